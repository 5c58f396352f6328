// TLS: owning wrappers over OpenSSL 3 (certificates, chains, keys, trust, contexts and the
// non-blocking connection). No pointer of OpenSSL leaves this room, and nothing here does I/O but
// `TLSConnection` on the descriptor that it was given.

/// Seconds since 1970-01-01 00:00:00 UTC, leap seconds not counted.
package typealias UnixTime = Int64
