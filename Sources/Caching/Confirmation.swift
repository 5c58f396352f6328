package import PinproxyHTTPWire

/// Asking the origin whether a stored response still holds (RFC 9111 section 4.3).
package enum Confirmation {
    /// Fields of a 304 that don't become the stored response's (RFC 9111 section 3.2). They speak of the stored bytes;
    /// or of how they are read, and rules have judged the type that came with them; or to the one client that asked.
    private static let kept: Set<FieldName> = [
        .contentLength, .contentEncoding, .contentRange, .contentType, .setCookie,
    ]

    /// The edits that make a request conditional on `response`. The client's own conditions are answered here.
    package static func edits(for response: OwnedResponse) -> HeadEdits {
        var edits = HeadEdits()
        for name in ["If-None-Match", "If-Modified-Since", "If-Range", "Range"] { edits.append(.remove, name) }
        let view = response.view
        let traits = CachedTraits(view)
        // A tag of other bytes than UTF-8 can't be repeated exactly; a changed one could only be wrong.
        if let tag = traits.etag.flatMap({ String(validating: $0.text, as: UTF8.self) }) {
            edits.append(.set(tag), "If-None-Match")
        }
        // As the origin wrote it: some compare the text.
        for field in view.head.fields where field.id == .lastModified {
            guard HTTPDate.parse(view.bytes.extracting(field.value.offsets)) != nil else { continue }
            edits.append(.set(field.value.text(in: view.bytes)), "If-Modified-Since")
            break
        }
        return edits
    }

    /// Whether a 304 speaks of the stored response (RFC 9111 section 4.3.4): a strong tag has to be the same strong
    /// tag, a weak one the same or a strong one's, and a date without a tag the same date. One without any validator
    /// answers the only question that was asked.
    package static func confirms(_ update: CachedTraits, _ stored: CachedTraits) -> Bool {
        if let tag = update.etag { return stored.etag?.opaque == tag.opaque && (tag.isWeak || stored.strongTag) }
        if let date = update.lastModified { return stored.lastModified == date }
        return true
    }

    /// Replaces fields of the stored head by those of `update` (RFC 9111 section 3.2); nil if that makes no head.
    ///
    /// `update` is a 304, the response to HEAD, or another part. Age and Date of the old response say nothing of the
    /// new one: without one there, they end.
    /// - Parameter received: Unix seconds; becomes Date if `update` has no such field. Nil: the head has no Date then.
    package static func updated(
        _ stored: OwnedResponse, by update: borrowing ResponseView, received: Int64? = nil
    ) -> OwnedResponse? {
        let nominated = update.nominatedFields
        var replaced: Set<String> = ["age", "date"]
        var added: [UInt8] = []
        for field in update.head.fields {
            if kept.contains(field.id) || field.isOfConnection(in: update.bytes, nominated: nominated)
                || field.isDigest(in: update.bytes) || isUnreadable(field, in: update.bytes)
            {
                continue
            }
            replaced.insert(field.name.text(in: update.bytes).lowercased())
            added += update.bytes.extracting(field.line.offsets).array
        }
        if let received, !update.hasDate { added += "Date: \(HTTPDate.text(received))\r\n".utf8 }
        let view = stored.view
        let end = view.head.fields.first.map { Int($0.line.start) } ?? Int(view.head.length) - 2
        var out = view.bytes.extracting(0..<end).array
        for field in view.head.fields where !replaced.contains(field.name.text(in: view.bytes).lowercased()) {
            out += view.bytes.extracting(field.line.offsets).array
        }
        return stored.replaced(by: out + added + [0x0D, 0x0A])
    }

    /// An unreadable validator doesn't replace the stored response's.
    private static func isUnreadable(_ field: HeadField, in bytes: Span<UInt8>) -> Bool {
        switch field.id {
        case .etag: EntityTag.parse(bytes.extracting(field.value.offsets)) == nil
        case .date, .lastModified: HTTPDate.parse(bytes.extracting(field.value.offsets)) == nil
        default: false
        }
    }

    /// The confirmed head for the client that asked: with the cookies of the 304, which aren't stored.
    package static func answer(_ confirmed: OwnedResponse, by update: borrowing ResponseView) -> OwnedResponse? {
        guard update.head.first(.setCookie) != nil else { return confirmed }
        let view = confirmed.view
        var out = view.bytes.extracting(0..<Int(view.head.length) - 2).array
        for field in update.head.fields where field.id == .setCookie {
            out += update.bytes.extracting(field.line.offsets).array
        }
        return confirmed.replaced(by: out + [0x0D, 0x0A])
    }
}
