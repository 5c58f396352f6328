/// Icons and cursors: the directory, and how each image in it begins.
enum ICOImage {
    static func check(_ body: [UInt8], _ limits: ImageLimits) throws(ImageDefect) -> ImageSummary {
        let reader = LittleEndianReader(body)
        let count = try reader.word(4)
        guard count > 0 else { throw ImageDefect("it has no image") }
        var largest = (width: 0, height: 0)
        for index in 0..<count {
            let entry = 6 + 16 * index
            let size = try reader.long(entry + 8)
            let offset = try reader.long(entry + 12)
            guard offset >= 6 + 16 * count, size >= 40 else {
                throw ImageDefect("image \(index + 1) of \(count) is damaged")
            }
            guard offset + size <= body.count else { throw .truncated }
            let isPNG = ImageFormat(of: Array(body[offset..<offset + 8])) == .png
            let isBitmap = try reader.long(offset) == 40
            guard isPNG || isBitmap else {
                throw ImageDefect("image \(index + 1) of \(count) is neither a PNG nor a bitmap")
            }
            // 0 stands for 256.
            let (width, height) = (Int(body[entry]), Int(body[entry + 1]))
            if (width == 0 ? 256 : width) >= largest.width {
                largest = (width == 0 ? 256 : width, height == 0 ? 256 : height)
            }
        }
        return ImageSummary(format: .ico, width: largest.width, height: largest.height, frames: count)
    }
}
