@testable import PinproxySerialization

/// The reason why an image is refused; nil: it isn't.
func explanation(_ body: [UInt8], _ limits: ImageLimits = ImageLimits()) -> String? {
    caught { () throws(BodyDefect) in try ImageResponseSerializer(limits: limits).check(body: body) }?.explanation
}
