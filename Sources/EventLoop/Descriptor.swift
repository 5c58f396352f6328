internal import Glibc

/// An open file descriptor that has one owner: closed when the value goes, unless it is released.
package struct Descriptor: ~Copyable {
    package let raw: CInt

    /// Takes over `raw`, which must be open and owned by nobody else.
    package init(owning raw: CInt) {
        self.raw = raw
    }

    /// Gives the descriptor away: whoever receives it has to close it.
    package consuming func release() -> CInt {
        let raw = self.raw
        discard self
        return raw
    }

    deinit {
        // Not repeated on EINTR: on Linux the descriptor is gone by then, and its number may be somebody else's.
        _ = Glibc.close(raw)
    }
}
