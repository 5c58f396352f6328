internal import PinproxyClients
internal import PinproxyConfiguration
internal import PinproxySecurity
internal import PinproxySerialization
internal import PinproxySession

/// A request as the rules would have it sent. Values from secret files are masked.
struct SentRequest {
    enum Content {
        case own
        /// The body from the parameters, where the client sends none.
        case parameters([UInt8], contentType: String)
        /// A form in parts, of this length in bytes.
        case form(length: Int)
    }

    let method: String
    /// Path and query.
    let target: String
    let edits: [HeaderEdit]
    private let content: Content
    private let rules: RequestRules
    /// A body of the client's own is converted.
    private let conversion: BodyConversion?
    /// Nothing is sent, for that reason.
    let refusal: Rehearsal.Answer?

    init(_ method: String, _ target: String, by laid: ExchangeRules, for decision: Rehearsal.Decision) {
        let rules = laid.request
        self.method = method
        self.rules = rules
        edits = rules.headerEdits
        var (content, sent) = (Content.own, target)
        var refusal: Rehearsal.Answer?
        do throws(RequestSerializationError) {
            switch try rules.serialize(into: RequestOutline(method: method, target: Array(target.utf8))) {
            case .unchanged: break
            case .target(let bytes): sent = String(decoding: bytes, as: UTF8.self)
            case .body(let body, let type): content = .parameters(body, contentType: type ?? "")
            case .form(let form): content = .form(length: try form.open().contentLength)
            }
        } catch {
            refusal = Rehearsal.Answer(error, by: laid.source(of: error), for: decision.host, entry: decision.entry)
        }
        (self.content, self.target, self.refusal) = (content, sent, refusal)
        let withBody = RequestOutline(method: method, target: Array(target.utf8), hasContentType: true, hasBody: true)
        let unchanged = if case .unchanged? = try? rules.serialize(into: withBody) { true } else { false }
        conversion = unchanged ? rules.convertBody : nil
    }

    // MARK: For people

    var lines: [String] {
        var lines = ["", "The request as it would be sent:", "  \(method) \(target.printable(longest: 4000))"]
        for edit in edits {
            switch edit {
            case .set(let field): lines.append("  set               \(Self.shown(field))")
            case .setIfAbsent(let field): lines.append("  set where absent  \(Self.shown(field))")
            case .remove(let name): lines.append("  removed           \(name)")
            }
        }
        lines += bodyLines.map { "  body              \($0)" }
        if rules.upgradeInsecure { lines.append("  http:// is sent as https://") }
        return lines
    }

    private static func shown(_ field: HeaderField) -> String {
        "\(field.name): \(field.value.description.printable(longest: 1000))"
    }

    private var bodyLines: [String] {
        var lines: [String] = []
        switch content {
        case .own: break
        case .parameters(let body, let type):
            let more = body.count > 1000 ? " (\(Count(body.count, "byte")) in all)" : ""
            lines.append("\(String(decoding: body, as: UTF8.self).printable(longest: 1000))\(more)")
            lines.append("Content-Type: \(type), if the request lacks it")
        case .form(let length):
            lines.append("\(Count(length, "byte")) of multipart/form-data: \(partNames)")
            if let throttle { lines.append("sent in packets: \(throttle)") }
        }
        if case .own = content {
        } else {
            lines.append("a request that brings a body keeps that, and gets no parameters")
        }
        if let conversion {
            lines.append("of \(conversion.from.contentType) is converted to \(conversion.to.contentType)")
        }
        return lines
    }

    private var partNames: String {
        let parameters = rules.parameters.isEmpty ? [] : ["parameters \(rules.text(of: .parameters))"]
        let parts = rules.parts.isEmpty ? [] : ["parts \(rules.text(of: .parts))"]
        return (parameters + parts).joined(separator: ", ").printable(longest: 1000)
    }

    private var throttle: String? { rules.throttle.map { _ in rules.text(of: .throttle) } }

    // MARK: For programs

    struct Report: Encodable {
        struct Edit: Encodable {
            let edit: String
            let name: String
            let value: String?
        }
        struct Body: Encodable {
            let contentType: String
            let text: String?
            let length: Int
            let parts: String?
            let throttle: String?
        }
        struct Conversion: Encodable {
            let from: String
            let to: String
        }
        let method: String
        let target: String
        let headers: [Edit]
        let body: Body?
        let convertBody: Conversion?
        let upgradeInsecure: Bool
    }

    var report: Report {
        let body: Report.Body? =
            switch content {
            case .own: nil
            case .parameters(let body, let type):
                Report.Body(
                    contentType: type, text: String(decoding: body, as: UTF8.self), length: body.count, parts: nil,
                    throttle: nil)
            case .form(let length):
                Report.Body(
                    contentType: "multipart/form-data", text: nil, length: length, parts: partNames, throttle: throttle)
            }
        return Report(
            method: method, target: target,
            headers: edits.map { edit in
                switch edit {
                case .set(let field): Report.Edit(edit: "set", name: "\(field.name)", value: "\(field.value)")
                case .setIfAbsent(let field):
                    Report.Edit(edit: "set-where-absent", name: "\(field.name)", value: "\(field.value)")
                case .remove(let name): Report.Edit(edit: "remove", name: "\(name)", value: nil)
                }
            }, body: body, convertBody: conversion.map { .init(from: $0.from.contentType, to: $0.to.contentType) },
            upgradeInsecure: rules.upgradeInsecure)
    }
}
