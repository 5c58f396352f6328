// TLS: owning wrappers over OpenSSL 3. OpenSSL's pointers don't leave this module. Only `TLSConnection` does I/O, on
// its descriptor.

/// Seconds since 1970-01-01 00:00:00 UTC, leap seconds not counted.
package typealias UnixTime = Int64
