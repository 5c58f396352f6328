/// The program and the libraries that this process runs, as the kernel has them mapped (proc(5), `maps`).
package enum MappedFiles {
    /// A few hundred lines, of about 100 bytes each.
    private static let longest = 1 << 20

    /// Those that were replaced on disk, or removed, since they were loaded: this process still runs the old ones.
    package static func replaced() -> [String] { ProcFile.read("/proc/self/maps", longest: longest).map(replaced) ?? [] }

    static func replaced(in maps: String) -> [String] {
        let mark = " (deleted)"
        let paths = maps.split(separator: "\n").compactMap { line -> String? in
            // Code alone: a library's data is mapped beside it, and shared memory is deleted files too.
            let fields = line.split(separator: " ", maxSplits: 5)
            guard line.hasSuffix(mark), fields.count == 6, fields[1].contains("x") else { return nil }
            let path = fields[5].drop { $0 == " " }.dropLast(mark.count)
            return path.hasPrefix("/") && !path.hasPrefix("/memfd:") ? String(path) : nil
        }
        return Set(paths).sorted()
    }
}
