/// What becomes of one header field of a request.
///
/// Printing a value that was read from a secret file shows that there is one, and not which.
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
    /// The edits that these rules ask for, at most one for a name. They follow from the rules alone, so that they
    /// can be made once and applied to every request.
    ///
    /// The rules are read in this order, a later one over an earlier one of the same name: `remove_headers`;
    /// `headers`, then `accept_language` and `authorization`, all only where the request has no such field (as
    /// AFHTTPRequestSerializer applies its HTTPRequestHeaders); `set_headers`; `cookies: strip`. A field that is
    /// removed and then set where there is none is set in any case, because by then there is none.
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
