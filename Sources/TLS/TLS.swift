// TLS: owning wrappers over OpenSSL 3. No pointer of OpenSSL leaves this room, and nothing here does I/O but
// `TLSConnection` on its descriptor.

/// Seconds since 1970-01-01 00:00:00 UTC, leap seconds not counted.
package typealias UnixTime = Int64
