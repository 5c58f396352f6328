/// A change to one header field of a request. Printing it hides secret values.
public enum HeaderEdit: Sendable, Hashable, CustomStringConvertible {
    /// The field has this value, whatever the request said.
    case set(HeaderField)
    /// The field has this value where the request has none.
    case setIfAbsent(HeaderField)
    /// There is no such field.
    case remove(HeaderName)

    /// Which field is changed.
    public var name: HeaderName {
        switch self {
        case .set(let field), .setIfAbsent(let field): field.name
        case .remove(let name): name
        }
    }

    /// Whether it sends a password or token, so that it must not go over a connection that anyone can read.
    public var isSecret: Bool {
        switch self {
        case .set(let field), .setIfAbsent(let field): field.value.isSecret
        case .remove: false
        }
    }

    /// For people: `X-Key: •••`.
    public var description: String {
        switch self {
        case .set(let field): "\(field.name): \(field.value)"
        case .setIfAbsent(let field): "\(field.name): \(field.value) (where the request has none)"
        case .remove(let name): "\(name) removed"
        }
    }
}

extension RequestRules {
    /// The edits of these rules, at most one for a name, for every request.
    ///
    /// Later rules override earlier ones: `remove_headers`; `headers`, `accept_language` and `authorization` where the
    /// request has no such field (as AFHTTPRequestSerializer's HTTPRequestHeaders); `set_headers`; `cookies: strip`. A
    /// field that is removed before is always set.
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
                // Removed before, and set since.
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
