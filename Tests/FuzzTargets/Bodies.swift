internal import Foundation
import PinproxySerialization

/// Bodies that are judged by their contents, and their codings.
enum Bodies {
    static func json(_ bytes: [UInt8]) {
        let serializer = JSONResponseSerializer()
        guard !bytes.isEmpty, bytes != [0x20] else { return }
        let refusal = defect { () throws(BodyDefect) in try serializer.check(body: bytes) }
        var value: ParameterValue?
        let valueRefusal = defect { () throws(BodyDefect) in value = try serializer.value(ofBody: bytes) }
        require(refusal?.explanation == valueRefusal?.explanation, "checking and reading find the same wrong")
        let foundation = try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
        guard refusal == nil, let value else {
            let isNamed =
                refusal.map { explanation in differences.contains { explanation.explanation.contains($0) } } ?? false
            // It also reads UTF-16 and UTF-32 with a truncated last unit.
            require(
                foundation == nil || isNamed || bytes.contains(0),
                "JSONSerialization accepts what is refused: \(refusal.map { "\($0)" } ?? "")")
            return
        }
        require(
            foundation != nil,
            "JSONSerialization refuses what is accepted: \(String(decoding: bytes, as: UTF8.self).debugDescription)")
        guard let cut = try? serializer.removingNullValues(from: bytes) else {
            require(!holdsNull(value), "null members are found")
            return
        }
        var rest: ParameterValue?
        let cutRefusal = defect { () throws(BodyDefect) in rest = try serializer.value(ofBody: cut) }
        require(
            cutRefusal == nil,
            "JSON without null members is JSON: \(String(decoding: cut, as: UTF8.self).debugDescription)")
        if let rest { require(!holdsNull(rest), "no null member is left") }
    }

    /// Inputs that JSONSerialization accepts on Linux and `JSONResponseSerializer` refuses, by the text of the refusal.
    /// They are a comma before the end of an array or object, and a huge number under a repeated key.
    private static let differences = ["found \"]\"", "found \"}\"", "beyond the range of a double"]

    private static func holdsNull(_ value: ParameterValue) -> Bool {
        switch value {
        case .dictionary(let pairs): pairs.contains { $0.value == .null || holdsNull($0.value) }
        case .array(let values): values.contains { $0 == .null || holdsNull($0) }
        default: false
        }
    }

    static func xml(_ bytes: [UInt8]) {
        let serializer = XMLResponseSerializer()
        let refusal = defect { () throws(BodyDefect) in try serializer.check(body: bytes) }
        let again = defect { () throws(BodyDefect) in try serializer.check(body: bytes) }
        require(refusal?.explanation == again?.explanation, "a document is judged alike twice")
    }

    static func propertyList(_ bytes: [UInt8]) {
        let serializer = PropertyListResponseSerializer()
        let refusal = defect { () throws(BodyDefect) in try serializer.check(body: bytes) }
        let valueRefusal = defect { () throws(BodyDefect) in _ = try serializer.value(ofBody: bytes) }
        require(refusal?.explanation == valueRefusal?.explanation, "checking and reading find the same wrong")
    }

    static func image(_ bytes: [UInt8]) {
        let limits = ImageLimits(pixels: 1 << 18, memory: 8 << 20)
        guard let summary = try? ImageResponseSerializer(limits: limits).value(ofBody: bytes) else { return }
        require(summary.width > 0 && summary.height > 0 && summary.frames > 0, "an image has pixels")
        let (area, overflows) = summary.width.multipliedReportingOverflow(by: summary.height)
        require(!overflows && area <= limits.pixels, "an image stays in its limit: \(summary)")
    }

    static func contentCoding(_ bytes: [UInt8]) {
        var choices = Choices(bytes, count: 3)
        let seed = choices.byte()
        var codings = [choices.one(of: ContentCoding.allCases)]
        let second = choices.byte()
        if second & 0x80 != 0 { codings.append(ContentCoding.allCases[Int(second & 3)]) }
        let limits = ContentDecoder.Limits(length: 1 << 16, ratio: 200, allowance: 1 << 12)
        let whole = try? ContentDecoder.decode(choices.input, codings: codings, limits: limits)
        if let whole { require(whole.count <= limits.length, "a decoder's output stays in its limit") }
        let pieces = inPieces(choices.input, seed, codings, limits)
        if let whole, let pieces { require(whole == pieces, "a body is decoded alike, however it is cut") }
    }

    private static func inPieces(
        _ input: [UInt8], _ seed: UInt8, _ codings: [ContentCoding], _ limits: ContentDecoder.Limits
    ) -> [UInt8]? {
        var decoder = ContentDecoder(codings: codings, limits: limits)
        var cuts = Cuts(seed: seed)
        var arrived = 0
        while arrived < input.count {
            let end = min(arrived + cuts.next(), input.count)
            guard (try? decoder.push(Array(input[arrived..<end]))) != nil else { return nil }
            arrived = end
        }
        return try? decoder.finish()
    }

    private static func defect(_ work: () throws(BodyDefect) -> Void) -> BodyDefect? {
        do throws(BodyDefect) {
            try work()
            return nil
        } catch {
            return error
        }
    }
}
