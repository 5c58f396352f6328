/// A change to one header field of a request. Printing it hides secret values.
public enum HeaderEdit: Sendable, Hashable, CustomStringConvertible {
    /// Sets the field, and replaces the request's value.
    case set(HeaderField)
    /// Sets the field if the request lacks it.
    case setIfAbsent(HeaderField)
    /// Removes the field.
    case remove(HeaderName)

    /// The field to change.
    public var name: HeaderName {
        switch self {
        case .set(let field), .setIfAbsent(let field): field.name
        case .remove(let name): name
        }
    }

    /// Whether it sends a password or token, which must not go over an unencrypted connection.
    public var isSecret: Bool {
        switch self {
        case .set(let field), .setIfAbsent(let field): field.value.isSecret
        case .remove: false
        }
    }

    /// The edit for display: `X-Key: •••`.
    public var description: String {
        switch self {
        case .set(let field): "\(field.name): \(field.value)"
        case .setIfAbsent(let field): "\(field.name): \(field.value) (if the request lacks it)"
        case .remove(let name): "\(name) removed"
        }
    }
}

extension RequestRules {
    /// The edits of these rules for every request, at most one per name.
    ///
    /// Later rules override earlier ones: `remove_headers`; `headers`, `accept_language` and `authorization` if the
    /// request lacks the field (as AFHTTPRequestSerializer's HTTPRequestHeaders); `set_headers`; `cookies: strip`. A
    /// field that was removed before is always set.
    public var headerEdits: [HeaderEdit] {
        var edits: [HeaderEdit] = []
        func apply(_ edit: HeaderEdit) {
            guard let index = edits.firstIndex(where: { $0.name == edit.name }) else {
                edits.append(edit)
                return
            }
            if case (.setIfAbsent(let field), .remove) = (edit, edits[index]) {
                edits[index] = .set(field)
            } else if case (.setIfAbsent(let field), .set) = (edit, edits[index]) {
                // Removed before, and set again.
                edits[index] = .set(field)
            } else {
                edits[index] = edit
            }
        }
        for name in removeHeaders { apply(.remove(name)) }
        for field in headers { apply(.setIfAbsent(field)) }
        if let value = LanguageRange.acceptLanguage(acceptLanguage) {
            apply(.setIfAbsent(HeaderField(name: .acceptLanguage, value: value)))
        }
        if let authorization {
            apply(.setIfAbsent(HeaderField(name: .authorization, value: authorization.basicAuthorization)))
        }
        for field in setHeaders { apply(.set(field)) }
        if cookies == .strip { apply(.remove(.cookie)) }
        return edits
    }
}
