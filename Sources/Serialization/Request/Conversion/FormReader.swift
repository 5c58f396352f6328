/// Reads a form, `application/x-www-form-urlencoded`, and rebuilds its structure: `user[name]=x&tags[]=a`.
///
/// - A `+` is a space, a bare key is null, a repeated key is a list: `a=1&a=2`.
/// - `a[][b]=1&a[][c]=2&a[][b]=3` is a list of two: a key that is there begins the next element, as with Rails.
/// - A name with unbalanced brackets is taken literally.
/// - Refused are: an incomplete escape, invalid UTF-8, a name that is both a value and a container, lists within lists
///   (a form can't say where the inner one ends), and nesting of more than ``deepest``.
struct FormReader {
    static let deepest = 256
    private static let format = "a form"

    static func read(_ body: [UInt8], contentType: String) throws(RequestSerializationError) -> ParameterValue {
        do throws(BodyDefect) {
            try checkCharset(of: contentType)
            var start = 0
            let tree = FormTree(.dictionary)
            while start <= body.count {
                let end = body[start...].firstIndex(of: UInt8(ascii: "&")) ?? body.count
                if end > start { try insert(body, start..<end, into: tree) }
                start = end + 1
            }
            return tree.value
        } catch {
            throw RequestSerializationError(.malformedBody(format: format, error))
        }
    }

    private static func insert(_ body: [UInt8], _ range: Range<Int>, into tree: FormTree) throws(BodyDefect) {
        let equals = body[range].firstIndex(of: UInt8(ascii: "="))
        let key = try decode(body, range.lowerBound..<(equals ?? range.upperBound))
        var leaf = ParameterValue.null
        if let equals { leaf = .string(try text(try decode(body, equals + 1..<range.upperBound), in: body, at: range)) }
        let place = TextPlaceOfByte(body: body, offset: range.lowerBound)
        guard let steps = steps(of: key) else {
            throw place.defect("the name is nested more than \(deepest) deep")
        }
        for case .key(let bytes) in steps { _ = try text(bytes, in: body, at: range) }
        if let reason = tree.insert(leaf, at: steps[...]) {
            throw place.defect("\(ShownBytes.text(key.span)) \(reason)")
        }
    }

    /// The name in steps; nil if there are too many. An unbalanced name is a single step.
    private static func steps(of name: [UInt8]) -> [FormTree.Step]? {
        guard let first = name.firstIndex(of: UInt8(ascii: "[")), first > 0 else { return [.key(name)] }
        var steps: [FormTree.Step] = [.key(Array(name[..<first]))]
        var at = first
        while at < name.count {
            guard name[at] == UInt8(ascii: "["), let end = name[at...].firstIndex(of: UInt8(ascii: "]")) else {
                return [.key(name)]
            }
            let inner = Array(name[(at + 1)..<end])
            guard !inner.contains(UInt8(ascii: "[")) else { return [.key(name)] }
            steps.append(inner.isEmpty ? .element : .key(inner))
            guard steps.count <= deepest else { return nil }
            at = end + 1
        }
        return steps
    }

    private static func decode(_ body: [UInt8], _ range: Range<Int>) throws(BodyDefect) -> [UInt8] {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(range.count)
        var at = range.lowerBound
        while at < range.upperBound {
            switch body[at] {
            case UInt8(ascii: "+"): decoded.append(0x20)
            case UInt8(ascii: "%"):
                guard at + 2 < range.upperBound, let high = Hexadecimal.digit(body[at + 1]),
                    let low = Hexadecimal.digit(body[at + 2])
                else {
                    throw TextPlaceOfByte(body: body, offset: at).defect("% is not followed by two hexadecimal digits")
                }
                decoded.append(high << 4 | low)
                at += 2
            default: decoded.append(body[at])
            }
            at += 1
        }
        return decoded
    }

    private static func text(_ bytes: [UInt8], in body: [UInt8], at range: Range<Int>) throws(BodyDefect) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw TextPlaceOfByte(body: body, offset: range.lowerBound).defect(
                "the bytes from here aren't valid UTF-8 after decoding")
        }
        return text
    }

    /// Refuses a charset other than UTF-8. A form by the WHATWG names no charset, and is UTF-8.
    private static func checkCharset(of contentType: String) throws(BodyDefect) {
        for parameter in contentType.split(separator: ";").dropFirst() {
            let parts = parameter.split(separator: "=", maxSplits: 1).map {
                $0.filter { !" \t\"".contains($0) }.lowercased()
            }
            guard parts.first == "charset" else { continue }
            guard parts.count == 2, ["utf-8", "utf8", "us-ascii"].contains(parts[1]) else {
                throw BodyDefect(
                    "charset \(ShownBytes.text(Array((parts.last ?? "").utf8).span)) is not supported; send UTF-8")
            }
        }
    }
}

/// The place of a defect, found only if there is one.
private struct TextPlaceOfByte {
    let body: [UInt8]
    let offset: Int

    func defect(_ explanation: String) -> BodyDefect {
        BodyDefect(explanation, at: TextPlace(ofByte: offset, in: body.span))
    }
}
