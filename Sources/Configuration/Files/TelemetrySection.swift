internal import PinproxyHTTPWire
internal import PinproxySerialization

extension DaemonFileReader {
    /// Nil: nothing is sent.
    func telemetry(_ root: Section) -> TelemetrySettings? {
        guard let written = root.nonNull("telemetry") else { return nil }
        let section = root.section("telemetry")
        defer { section.finish() }
        let collector = section.required("otlp", of: written, "telemetry") { section.scalar($0, "otlp", .otlp) }
        let interval: Duration = section.read("interval", .duration(.seconds(10)...(.hours(1)))) ?? .seconds(60)
        let authorization = section.nonNull("authorization_file").flatMap { readAuthorization($0, section) }
        let (signals, attributes) = (readSignals(section), readAttributes(section))
        return collector.map { collector in
            TelemetrySettings(
                collector: collector, authorization: authorization, interval: interval, signals: signals,
                attributes: attributes)
        }
    }

    private func readAuthorization(_ value: YAMLValue, _ section: Section) -> Secret? {
        guard readsPrivateFiles,
            let text = SecretReader(section: section, file: file).secret(value, "authorization_file")
        else { return nil }
        guard !text.isEmpty, text.utf8.count <= 4096, text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }),
            text.first != " ", text.last != " "
        else {
            section.error(
                value,
                "authorization_file: its first line is not the value of a header field, such as Bearer and a token")
            return nil
        }
        return Secret(text)
    }

    private func readSignals(_ section: Section) -> [TelemetrySettings.Signal] {
        guard let value = section.nonNull("signals") else { return TelemetrySettings.Signal.allCases }
        let list = section.elements(value, "signals") ?? []
        if list.isEmpty { section.error(value, "signals: the list is empty; write metrics, logs or both") }
        let found = list.compactMap { section.scalar($0, "signals", Form<TelemetrySettings.Signal>.anyCase) }
        return TelemetrySettings.Signal.allCases.filter(found.contains)
    }

    private func readAttributes(_ section: Section) -> [String: String] {
        guard let value = section.nonNull("attributes"), let pairs = section.pairs(value, "attributes") else {
            return [:]
        }
        let limit = TelemetrySettings.attributesLimit
        if pairs.count > limit {
            section.error(value, "attributes: there are \(pairs.count); \(limit) at most are sent")
        }
        var attributes: [String: String] = [:]
        for pair in pairs.prefix(limit) {
            if let problem = Self.problem(ofAttribute: pair.key) {
                section.error(section.place(of: pair), "attributes: \(problem)")
            } else {
                attributes[pair.key] = section.scalar(pair.value, "attributes", .attribute)
            }
        }
        return attributes
    }

    private static func problem(ofAttribute name: String) -> String? {
        let isName =
            (1...64).contains(name.utf8.count) && name.first?.isLetter == true
            && name.utf8.allSatisfy { byte in
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "._".utf8.contains(byte)
            }
        guard isName else {
            return "\"\(ShownText(name))\" is not a name: a to z, 0 to 9, \".\" and \"_\", at most 64"
        }
        return name.hasPrefix("service.") && name != "service.namespace" || name == "host.name"
            ? "\(name) is set by the proxy; choose another name" : nil
    }
}

extension Form where Value == String {
    /// The value of an attribute.
    fileprivate static var attribute: Form {
        Form { text in
            guard (1...256).contains(text.utf8.count), !text.unicodeScalars.contains(where: { $0.value < 0x20 }) else {
                return .failure(Reason("a value has 1 to 256 bytes, and no control characters"))
            }
            return .success(text)
        }
    }
}

extension Form where Value == ServiceURL {
    /// Events name hosts and users: without TLS they stay on this machine.
    fileprivate static var otlp: Form {
        Form { text in
            ServiceURL.parse(
                text, example: "https://collector.example.com:4318", purpose: "metrics and logs can't be sent to"
            ).flatMap { url in
                if url.target.contains("?") {
                    return .failure(Reason("a query can't be sent; a token belongs into authorization_file"))
                }
                if let path = ["/v1/metrics", "/v1/logs"].first(where: url.target.hasSuffix) {
                    return .failure(Reason("leave out \(path): the proxy appends it"))
                }
                guard url.isSecure || url.isOnThisMachine else {
                    return .failure(
                        Reason("http:// is for a collector on this machine (127.0.0.1, [::1]); write https://"))
                }
                return .success(url)
            }
        }
    }
}
