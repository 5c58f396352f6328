internal import Glibc

/// Small files of procfs(5).
enum ProcFile {
    static let longest = 16 << 10

    static func read(_ path: String, longest: Int = longest) -> String? {
        read(open(path, O_RDONLY | O_CLOEXEC), longest)
    }

    /// - Parameter directory: an open process directory.
    static func read(_ name: String, in directory: CInt) -> String? {
        read(openat(directory, name, O_RDONLY | O_CLOEXEC), longest)
    }

    /// - Parameter raw: taken over.
    private static func read(_ raw: CInt, _ longest: Int) -> String? {
        guard raw >= 0 else { return nil }
        defer { close(raw) }
        var bytes: [UInt8] = []
        var isWhole = false
        while !isWhole, bytes.count < longest {
            let piece = [UInt8](unsafeUninitializedCapacity: 4096) { buffer, count in
                count = max(0, Glibc.read(raw, buffer.baseAddress, buffer.count))
            }
            bytes += piece
            isWhole = piece.isEmpty
        }
        return isWhole ? String(decoding: bytes, as: UTF8.self) : nil
    }

    /// The entries of a directory that are numbers, ascending as the kernel lists them.
    static func numbers(in path: String) -> [Int32] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var numbers: [Int32] = []
        while let entry = readdir(directory) {
            if let number = Int32(entry.name), number > 0 { numbers.append(number) }
        }
        return numbers
    }

    /// A symbolic link's target; nil also if it is longer than 4095 bytes.
    static func link(_ name: String, in directory: CInt) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { room -> String? in
            guard let base = room.baseAddress else { return nil }
            let count = readlinkat(directory, name, base, room.count)
            guard count >= 0, count < room.count else { return nil }
            return String(validating: room.prefix(count).lazy.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }
}

private let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name) ?? 0

extension UnsafeMutablePointer<dirent> {
    /// Read in place: `pointee.d_name` would copy 256 bytes, perhaps beyond the last entry and the memory.
    var name: String {
        String(cString: (UnsafeRawPointer(self) + nameOffset).assumingMemoryBound(to: CChar.self))
    }
}
