internal import Glibc
internal import PinproxyBundles
internal import PinproxySecurity
internal import PinproxyTLS

/// Reads the files that decide what is let through: from their places, or from copies of them.
///
/// These are pinproxy.yaml, the pin file, and the trust anchors, pin files and lists of CT logs that they name.
/// Everything else is always read from its own path: secrets, never copied; certificates, which belong to a key;
/// and revocation lists, since an old one forgets a revocation.
final class FileSources {
    /// The files and what they were when they were read, in that order.
    private(set) var stamps: [FileStamp] = []
    /// The listings of patterns when they were read, in that order.
    private(set) var listings: [FileListing] = []
    private var known: Set<String> = []
    /// Digests of pinproxy.yaml, the pin files, and the bundle's pin files, in reading order.
    private var digests: [UInt8] = []
    private var copies: [String: CInt] = [:]
    private var readsCopies: Bool { !copies.isEmpty }
    /// The files of a bundle, by their paths in it.
    private var ofBundle: [String: CInt] = [:]

    init() {}

    /// Reads the copies instead of the files.
    /// - Parameter snapshot: read from the files themselves, which may have changed since.
    init(_ files: ConfigurationFiles, of snapshot: Snapshot? = nil) throws(ConfigurationProblems) {
        stamps = snapshot?.sources ?? []
        listings = snapshot?.listings ?? []
        for file in files.contents {
            do throws(FileProblem) {
                copies[file.path] = try MemoryFile.make(file.bytes)
            } catch {
                for descriptor in copies.values { close(descriptor) }
                let place = Place(file: file.path)
                throw ConfigurationProblems([Problem(.error, at: place, "its copy can't be read: \(error)")])
            }
        }
    }

    deinit { for descriptor in copies.values.map(\.self) + ofBundle.values.map(\.self) { close(descriptor) } }

    /// Makes the files of a bundle readable.
    func add(_ bundle: BundleInForce) throws(FileProblem) {
        for file in bundle.files { ofBundle[file.path] = try MemoryFile.make(file.bytes) }
    }

    func note(_ contents: [UInt8]) { digests += SHA256Digest.of(contents).bytes }

    /// A digest of those files, which differs between policies.
    var digest: SHA256Digest { SHA256Digest.of(digests) }

    func source(_ path: String) -> String {
        if ServiceCredential.isCredential(path) { return path }
        // A file of the bundle has no other place.
        if path.hasPrefix(BundleInForce.prefix) {
            return "/proc/self/fd/\(BundleInForce.place(of: path).flatMap { ofBundle[$0] } ?? -1)"
        }
        if let copy = copies[FileStamp.absolute(path)] { return "/proc/self/fd/\(copy)" }
        let stamp = FileStamp(path)
        if known.insert(stamp.path).inserted { stamps.append(stamp) }
        return path
    }

    /// The files that a pattern names, in the order of their names. A path without wildcards names itself.
    func paths(_ pattern: String) throws(Reason) -> [String] {
        guard FileListing.hasWildcard(pattern) else { return [pattern] }
        let (directory, name) = FileListing.split(pattern)
        if pattern.hasPrefix(BundleInForce.prefix) {
            guard let place = BundleInForce.place(of: directory + "/") else { return [] }
            return Self.names(among: ofBundle.keys, in: place.isEmpty ? "." : place, like: name).map {
                BundleInForce.prefix + (place.isEmpty ? $0 : "\(place)/\($0)")
            }
        }
        let names: [String]
        if readsCopies {
            names = Self.names(among: copies.keys, in: FileStamp.absolute(directory), like: name)
        } else {
            let listing = try FileListing(pattern)
            listings.append(listing)
            names = listing.names
        }
        return names.map { "\(directory)/\($0)" }
    }

    private static func names(
        among paths: some Collection<String>, in directory: String, like pattern: String
    ) -> [String] {
        paths.map(FileListing.split)
            .filter { $0.directory == directory && FileListing.fits($0.name, pattern) }
            .map(\.name).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
}
