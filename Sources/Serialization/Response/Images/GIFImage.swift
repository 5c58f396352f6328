internal import CPinproxyGIF

/// giflib, line by line: no frame is held. It is loaded with the first image.
enum GIFImage {
    private static let mostFrames = 10_000

    static var isAvailable: Bool { library != nil }

    private static let library = OptionalLibrary.load(SHIM_GIF_FILE, shim_gif(), shim_gif_load)

    private final class Reader {
        let bytes: [UInt8]
        let library: shim_gif
        var at = 0

        init(_ bytes: [UInt8], _ library: shim_gif) {
            self.bytes = bytes
            self.library = library
        }

        func read(_ count: Int, into target: UnsafeMutablePointer<UInt8>) -> Int {
            let taken = min(count, bytes.count - at)
            for index in 0..<taken { target[index] = bytes[at + index] }
            at += taken
            return taken
        }
    }

    static func decode(_ body: [UInt8], _ limits: ImageLimits) throws(ImageDefect) -> ImageSummary {
        guard let library else {
            throw ImageDefect("can't be checked: \(SHIM_GIF_FILE) is not installed (Debian package libgif7)")
        }
        return try decode(Reader(body, library), limits)
    }

    private static func decode(_ reader: Reader, _ limits: ImageLimits) throws(ImageDefect) -> ImageSummary {
        let library = reader.library
        var code: Int32 = 0
        let user = Unmanaged.passRetained(reader)
        defer { user.release() }
        let file = library.open(
            user.toOpaque(),
            { file, target, count in
                guard let file, let target, let user = file.pointee.UserData else { return 0 }
                return Int32(Unmanaged<Reader>.fromOpaque(user).takeUnretainedValue().read(Int(count), into: target))
            }, &code)
        guard let file else { throw defect(code, reader) }
        defer { _ = library.closeFile(file, nil) }

        var budget = ImageBudget(limits)
        try budget.check(canvas: Int(file.pointee.SWidth), Int(file.pointee.SHeight))
        var frames = 0
        while true {
            var kind = UNDEFINED_RECORD_TYPE
            try check(library.getRecordType(file, &kind), file, reader)
            switch kind {
            case IMAGE_DESC_RECORD_TYPE:
                guard frames < mostFrames else { throw ImageDefect("more than \(mostFrames) frames") }
                try frame(file, reader, &budget)
                frames += 1
            case EXTENSION_RECORD_TYPE:
                var label: Int32 = 0
                var block: UnsafeMutablePointer<GifByteType>?
                try check(library.getExtension(file, &label, &block), file, reader)
                while block != nil { try check(library.getExtensionNext(file, &block), file, reader) }
            case TERMINATE_RECORD_TYPE:
                guard frames > 0 else { throw ImageDefect("it has no frame") }
                return ImageSummary(
                    format: .gif, width: Int(file.pointee.SWidth), height: Int(file.pointee.SHeight), frames: frames)
            default: throw ImageDefect("an unknown record before byte \(reader.at)")
            }
        }
    }

    private static func frame(
        _ file: UnsafeMutablePointer<GifFileType>, _ reader: Reader, _ budget: inout ImageBudget
    ) throws(ImageDefect) {
        try check(reader.library.getImageDesc(file), file, reader)
        let (width, height) = (Int(file.pointee.Image.Width), Int(file.pointee.Image.Height))
        try budget.take(width: width, height: height, bytesPerPixel: 1)
        let line = UnsafeMutablePointer<GifPixelType>.allocate(capacity: width)
        defer { line.deallocate() }
        // Interlaced lines come in another order, each as long.
        for _ in 0..<height { try check(reader.library.getLine(file, line, Int32(width)), file, reader) }
    }

    private static func check(
        _ result: Int32, _ file: UnsafeMutablePointer<GifFileType>, _ reader: Reader
    ) throws(ImageDefect) {
        guard result == GIF_ERROR else { return }
        throw defect(file.pointee.Error, reader)
    }

    private static func defect(_ code: Int32, _ reader: Reader) -> ImageDefect {
        guard reader.at < reader.bytes.count else { return .truncated }
        let message = reader.library.errorString(code).map { String(cString: $0) } ?? "damaged"
        return ImageDefect("\(ShownBytes.line(message)), before byte \(reader.at)")
    }
}
