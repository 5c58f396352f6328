package import PinproxySession

/// A parent proxy as `upstream.parent` takes it, written elsewhere.
package struct WrittenParent: Error {
    /// Why the text names none. The text isn't in it, as there may be a password in it.
    package let cause: String

    /// Parses `http://user:password@host:port`.
    package static func parse(_ text: String) throws(WrittenParent) -> ParentProxy {
        switch DaemonFileReader.parent(text) {
        case .success(let parent): return parent
        case .failure(let reason): throw WrittenParent(cause: reason.text)
        }
    }
}
