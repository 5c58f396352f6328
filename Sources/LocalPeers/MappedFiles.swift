/// The program and libraries that this process runs (`maps` of proc(5)).
package enum MappedFiles {
    private static let longest = 1 << 20

    /// Replaced or removed since they were loaded: this process still runs the old ones.
    package static func replaced() -> [String] {
        ProcFile.read("/proc/self/maps", longest: longest).map(replaced) ?? []
    }

    static func replaced(in maps: String) -> [String] {
        let mark = " (deleted)"
        let paths = maps.split(separator: "\n").compactMap { line -> String? in
            // Code only: data and shared memory are mapped too.
            let fields = line.split(separator: " ", maxSplits: 5)
            guard line.hasSuffix(mark), fields.count == 6, fields[1].contains("x") else { return nil }
            let path = fields[5].drop { $0 == " " }.dropLast(mark.count)
            return path.hasPrefix("/") && !path.hasPrefix("/memfd:") ? String(path) : nil
        }
        return Set(paths).sorted()
    }
}
