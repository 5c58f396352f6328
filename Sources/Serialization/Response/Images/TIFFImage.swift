internal import CPinproxyTIFF
internal import Glibc

/// libtiff: every page, strip by strip or tile by tile. It is loaded with the first image.
struct TIFFImage {
    private let library: shim_tiff
    private let tiff: OpaquePointer
    private let file: File
    private let limits: ImageLimits

    static var isAvailable: Bool { library != nil }

    private static let library = OptionalLibrary.load(SHIM_TIFF_FILE, shim_tiff(), shim_tiff_load)

    /// The file in memory, and what libtiff says of it.
    private final class File {
        let bytes: [UInt8]
        var at = 0
        var error: String?

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        var defect: ImageDefect { ImageDefect(error.map(ShownBytes.line) ?? "damaged") }

        static func of(_ handle: thandle_t?) -> File? {
            handle.map { Unmanaged<File>.fromOpaque($0).takeUnretainedValue() }
        }

        func read(_ count: Int, into target: UnsafeMutableRawPointer) -> Int {
            guard at >= 0, at < bytes.count, count > 0 else { return 0 }
            let taken = min(count, bytes.count - at)
            bytes.withUnsafeBytes { target.copyMemory(from: $0.baseAddress! + at, byteCount: taken) }
            at += taken
            return taken
        }
    }

    static func decode(_ body: [UInt8], _ limits: ImageLimits) throws(ImageDefect) -> ImageSummary {
        guard let library else {
            throw ImageDefect("can't be checked: \(SHIM_TIFF_FILE) is not installed (Debian package libtiff6)")
        }
        try TIFFLayout.check(body)
        let file = File(body)
        let handle = Unmanaged.passRetained(file)
        defer { handle.release() }
        guard let options = library.openOptionsAlloc() else { throw ImageDefect("no memory for a decoder") }
        defer { library.openOptionsFree(options) }
        library.openOptionsSetMaxSingleMemAlloc(options, tmsize_t(limits.memory))
        library.openOptionsSetErrorHandlerExtR(
            options,
            { _, handle, _, format, arguments in
                if let file = File.of(handle), file.error == nil, let format, let arguments {
                    file.error = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { text in
                        vsnprintf(text.baseAddress, text.count, format, arguments) < 0
                            ? nil : text.baseAddress.map { String(cString: $0) }
                    }
                }
                return 1
            }, handle.toOpaque())
        // Unknown tags, for example; with this handler nothing is printed.
        library.openOptionsSetWarningHandlerExtR(options, { _, _, _, _, _ in 1 }, nil)
        guard let tiff = open(handle.toOpaque(), options, library) else { throw file.defect }
        defer { library.close(tiff) }
        return try TIFFImage(library: library, tiff: tiff, file: file, limits: limits).pages()
    }

    /// "m": what isn't a file can't be mapped.
    private static func open(_ handle: thandle_t, _ options: OpaquePointer, _ library: shim_tiff) -> OpaquePointer? {
        library.clientOpenExt(
            "body", "rm", handle,
            { handle, target, count in
                guard let file = File.of(handle), let target else { return 0 }
                return tmsize_t(file.read(Int(count), into: target))
            },
            { _, _, _ in 0 },
            { handle, offset, whence in
                guard let file = File.of(handle) else { return UInt64.max }
                let base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file.at : file.bytes.count
                let (at, overflows) = base.addingReportingOverflow(Int(truncatingIfNeeded: offset))
                guard !overflows, at >= 0 else { return UInt64.max }
                file.at = at
                return UInt64(at)
            },
            { _ in 0 },
            { handle in UInt64(File.of(handle)?.bytes.count ?? 0) },
            { _, _, _ in 0 }, { _, _, _ in }, options)
    }

    private func pages() throws(ImageDefect) -> ImageSummary {
        var budget = ImageBudget(limits)
        var strips = TIFFStripBudget(limits, length: file.bytes.count)
        var first: (width: Int, height: Int)?
        var count = 0
        repeat {
            let page = (
                width: Int(field(TIFFTAG_IMAGEWIDTH) as UInt32), height: Int(field(TIFFTAG_IMAGELENGTH) as UInt32)
            )
            let samples = Int(max(field(TIFFTAG_SAMPLESPERPIXEL) as UInt16, 1))
            let bits = Int(max(field(TIFFTAG_BITSPERSAMPLE) as UInt16, 1))
            try budget.take(width: page.width, height: page.height, bytesPerPixel: (samples * bits + 7) / 8)
            try decode(page, &strips)
            first = first ?? page
            count += 1
        } while library.readDirectory(tiff) != 0
        guard file.error == nil, let first else { throw file.defect }
        return ImageSummary(format: .tiff, width: first.width, height: first.height, frames: count)
    }

    private func decode(_ page: (width: Int, height: Int), _ budget: inout TIFFStripBudget) throws(ImageDefect) {
        let isTiled = library.isTiled(tiff) != 0
        if isTiled {
            let tile = (
                width: Int(field(TIFFTAG_TILEWIDTH) as UInt32), height: Int(field(TIFFTAG_TILELENGTH) as UInt32)
            )
            try budget.check(tile: tile, of: page)
        }
        let size = Int(isTiled ? library.tileSize(tiff) : library.stripSize(tiff))
        let count = isTiled ? library.numberOfTiles(tiff) : library.numberOfStrips(tiff)
        guard size > 0, count > 0 else { throw file.defect }
        try budget.take(Int(count), ofSize: size)
        let target = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16)
        defer { target.deallocate() }
        for index in 0..<count {
            try budget.take(stored: library.getStrileByteCount(tiff, index))
            let read =
                isTiled
                ? library.readEncodedTile(tiff, index, target, tmsize_t(size))
                : library.readEncodedStrip(tiff, index, target, tmsize_t(size))
            guard read >= 0, file.error == nil else { throw file.defect }
        }
    }

    private func field<Value: FixedWidthInteger>(_ tag: Int32) -> Value {
        var value: Value = 0
        withUnsafeMutablePointer(to: &value) { pointer in
            _ = withVaList([pointer]) { library.vGetFieldDefaulted(tiff, UInt32(tag), $0) }
        }
        return value
    }
}
