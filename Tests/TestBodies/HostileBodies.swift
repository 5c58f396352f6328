/// Small bodies that would be expensive, one for each decoder, with words of their refusal.
package struct HostileBody: Sendable, CustomStringConvertible {
    /// The serializer's name in rules.
    package let serializer: String
    package let contentType: String
    /// Words of the reason.
    package let words: String
    package let bytes: [UInt8]

    package var description: String { "\(contentType) \(words)" }

    package static let all = [
        HostileBody(
            serializer: "property-list", contentType: "application/x-plist", words: "shared references expand",
            bytes: PropertyListFiles.sharing(73_000)),
        HostileBody(
            serializer: "xml", contentType: "application/xml", words: "an element has more than 1400 attributes",
            bytes: Array("<a \((0..<50_000).map { "a\($0)=''" }.joined(separator: " "))/>".utf8)),
        HostileBody(
            serializer: "xml", contentType: "application/xml", words: "its document type declaration is longer",
            bytes: Array(
                "<!DOCTYPE a [<!ATTLIST a b (\((0..<50_000).map { "n\($0)" }.joined(separator: "|"))) #IMPLIED>]><a/>"
                    .utf8)),
        HostileBody(
            serializer: "image", contentType: "image/tiff", words: "a tile of 32768 x 16384 pixels",
            bytes: ImageFiles.tiff(
                Array(repeating: 0, count: 8), pages: 1_000, ImageFiles.tiled(side: (width: 32_768, height: 16_384)))),
        HostileBody(
            serializer: "image", contentType: "image/jpeg", words: "109 scans", bytes: ImageFiles.jpeg(moreScans: 99)),
        HostileBody(
            serializer: "image", contentType: "image/png", words: "its texts may expand",
            bytes: ImageFiles.png(
                (0..<34).flatMap { _ in
                    ImageFiles.chunk("zTXt", Array("k\0\0".utf8) + Array(repeating: 0x55, count: 8_000))
                })),
        HostileBody(
            serializer: "image", contentType: "image/gif", words: "more than 10000 frames",
            bytes: ImageFiles.gif(frames: 10_001)),
        HostileBody(
            serializer: "image", contentType: "image/webp", words: "more than 10000 frames",
            bytes: ImageFiles.webp(frames: 10_001)),
        HostileBody(
            serializer: "image", contentType: "image/avif", words: "the tables of its items",
            bytes: ImageFiles.avif(items: 5_000)),
    ]
}
