/// The libraries that decode documents and images. Each is loaded when it is first needed; a process that can open no
/// file later loads all of them before.
package enum DecoderLibraries {
    /// - Returns: those that aren't installed, by their Debian packages. What needs them is refused, and says so.
    @discardableResult
    package static func load() -> [String] {
        [
            ("libxml2", XMLDocument.isAvailable), ("libpng16-16", PNGImage.isAvailable),
            ("libturbojpeg0", JPEGImage.isAvailable), ("libgif7", GIFImage.isAvailable),
            ("libwebpdemux2", WebPImage.isAvailable), ("libtiff6", TIFFImage.isAvailable),
            ("libavif15", AVIFImage.isAvailable),
        ].filter { !$0.1 }.map(\.0)
    }
}
