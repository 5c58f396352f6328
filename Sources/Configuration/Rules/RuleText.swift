import PinproxySecurity
package import PinproxySerialization
package import PinproxySession

// The values of rules in human-readable form, written as in the file.

extension SessionRules {
    package func text(of key: Key) -> String {
        switch key {
        case .timeout: Quantity.text(timeout)
        case .minimumRate: Quantity.text(minimumRate)
        case .redirects: redirects.rawValue
        case .maxRedirects: "\(maxRedirects)"
        case .followTo:
            switch followTo {
            case .named(let patterns): list(patterns.map(\.description))
            case .anywhere: "anywhere"
            }
        case .credentials: written(credentials, \.written)
        case .resume: "\(resume)"
        case .coalesce: "\(coalesce)"
        case .coalesceWith: list(coalesceWith.map(\.description))
        case .maxActive: written(maxActive, \.description)
        case .order: order.rawValue
        case .serviceType: serviceType.rawValue
        case .allowWWAN: "\(allowWWAN)"
        case .baseURL: written(baseURL, \.description)
        case .locationField: "\(locationField)"
        case .http: list(http.map(\.rawValue))
        case .ping: written(ping) { Quantity.text($0) }
        }
    }
}

extension CacheRules {
    package func text(of key: Key) -> String {
        switch key {
        case .cache: store.rawValue
        case .shared: "\(isShared)"
        }
    }
}

extension RequestRules {
    package func text(of key: Key) -> String {
        switch key {
        case .headers: list(headers.map { "\($0.name): \($0.value)" }, "{", "}")
        case .setHeaders: list(setHeaders.map { "\($0.name): \($0.value)" }, "{", "}")
        case .removeHeaders: list(removeHeaders.map(\.description))
        case .acceptLanguage: list(acceptLanguage.map(\.description))
        case .authorization: written(authorization, \.written)
        case .cookies: cookies.rawValue
        case .serializer: serializer.rawValue
        case .parameters: ParameterValue.dictionary(parameters).written
        case .queryMethods: list(queryMethods.map(\.description))
        case .convertBody: written(convertBody) { "{from: \($0.from.rawValue), to: \($0.to.rawValue)}" }
        case .parts: list(parts.map(\.written))
        case .throttle:
            written(throttle) { "{packet: \(Quantity.text(bytes: $0.packet)), delay: \(Quantity.text($0.delay))}" }
        case .upgradeInsecure: "\(upgradeInsecure)"
        }
    }
}

extension ResponseRules {
    package func text(of key: Key) -> String {
        switch key {
        case .status: written(status) { list($0.map(\.description)) }
        case .contentTypes: written(contentTypes) { list($0.map(\.description)) }
        case .serializer: serializers.count == 1 ? serializers[0].rawValue : list(serializers.map(\.rawValue))
        case .removeNullValues: "\(removeNullValues)"
        case .maxBody: written(maxBody, Quantity.text(bytes:))
        case .oversize: oversize.rawValue
        case .enforcement: enforcement.rawValue
        }
    }
}

private func written<Value>(_ value: Value?, _ text: (Value) -> String) -> String { value.map(text) ?? "null" }

private func list(_ elements: [String], _ open: String = "[", _ close: String = "]") -> String {
    open + elements.joined(separator: ", ") + close
}

extension ChallengeCredentials {
    fileprivate var written: String {
        "{user: \(user), password: \(Secret(""))\(allowsHTTP ? ", allow_http: true" : "")}"
    }
}

extension Credentials {
    fileprivate var written: String { "{user: \(user), password: \(password)}" }
}

extension MultipartPart {
    fileprivate var written: String {
        switch content {
        case .value(let text): "{name: \(name), value: \(text)}"
        case .data(let bytes, let fileName, let type):
            "{name: \(name), value: \(String(decoding: bytes, as: UTF8.self))\(Self.written(fileName, type))}"
        case .file(let path, let fileName, let type): "{name: \(name), file: \(path)\(Self.written(fileName, type))}"
        }
    }

    private static func written(_ fileName: String?, _ type: MediaType?) -> String {
        (fileName.map { ", file_name: \($0)" } ?? "") + (type.map { ", type: \($0)" } ?? "")
    }
}

extension ParameterValue {
    fileprivate var written: String {
        switch self {
        case .dictionary(let pairs): list(pairs.map { "\($0.key): \($0.value.written)" }, "{", "}")
        case .array(let values): list(values.map(\.written))
        case .set(let values): list(values.map(\.written).sorted(), "!!set {", "}")
        // In quotes where it would be read as something else.
        case .string(let text):
            ParameterValue(word: text) == self && !["", "~", "null"].contains(text) ? text : text.debugDescription
        case .number(let text): text
        case .bool(let value): "\(value)"
        case .null: "null"
        }
    }
}
