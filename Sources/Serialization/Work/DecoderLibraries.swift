internal import CPinproxyBrotli
internal import CPinproxyXML2
internal import CPinproxyZlib
internal import CPinproxyZstd

/// The libraries that decode documents and images, loaded at first use, or all before a process is confined.
package enum DecoderLibraries {
    /// A library that isn't installed. Settings that need it are refused with an error.
    package struct Missing: Sendable, Equatable {
        package let format: String
        /// The Debian package.
        package let package: String
    }

    package static func load() { _ = missing() }

    package static func missing() -> [Missing] { missingForDocuments() + missingForImages() }

    package static func missingForDocuments() -> [Missing] {
        XMLDocument.isAvailable ? [] : [Missing(format: "XML", package: "libxml2")]
    }

    package static func missingForImages() -> [Missing] {
        [
            ("PNG", "libpng16-16", PNGImage.isAvailable), ("JPEG", "libturbojpeg0", JPEGImage.isAvailable),
            ("GIF", "libgif7", GIFImage.isAvailable), ("WebP", "libwebpdemux2", WebPImage.isAvailable),
            ("TIFF", "libtiff6", TIFFImage.isAvailable), ("AVIF", AVIFImage.package, AVIFImage.isAvailable),
        ].filter { !$0.2 }.map { Missing(format: $0.0, package: $0.1) }
    }

    /// Versions of the libraries that report it. Loads libxml2.
    package static var versions: [(name: String, version: String)] {
        let brotli = BrotliDecoderVersion()
        var versions = [
            ("zlib", zlibVersion().map { String(cString: $0) } ?? "unknown"),
            ("brotli", "\(brotli >> 24).\(brotli >> 12 & 0xFFF).\(brotli & 0xFFF)"),
            ("zstd", String(cString: ZSTD_versionString())),
        ]
        if let version = XMLDocument.version { versions.append(("libxml2", version)) }
        return versions
    }
}
