internal import Glibc

struct DescriptorAllowance {
    /// Free for seemingly root-owned processes: untraceable ones (PR_SET_DUMPABLE of prctl(2)) of any user look so.
    private static let free = 64

    private let limit: Int
    private var taken: [UInt32: Int] = [:]
    private(set) var overdrawn: Set<UInt32> = []
    /// The current process: its directory, its user if known, and the descriptors examined.
    private var process: CInt = -1
    private var user: UInt32?
    private var count = 0

    init(limit: Int) { self.limit = limit }

    /// - Parameter process: its directory, open while ``take()`` is called.
    mutating func begin(_ process: CInt) {
        var status = stat()
        self.process = process
        user = fstat(process, &status) == 0 && status.st_uid != 0 ? status.st_uid : nil
        count = 0
    }

    /// - Returns: whether one more may be examined.
    mutating func take() -> Bool {
        count += 1
        if user == nil {
            guard count > Self.free else { return true }
            user = ProcFile.read("status", in: process).flatMap(Self.user(ofStatus:)) ?? 0
            if let user, user != 0 { taken[user, default: 0] += count - 1 }
        }
        guard let user, user != 0 else { return true }
        taken[user, default: 0] += 1
        guard taken[user, default: 0] <= limit else {
            overdrawn.insert(user)
            return false
        }
        return true
    }

    static func user(ofStatus status: String) -> UInt32? {
        let line = status.split(separator: "\n").first { $0.hasPrefix("Uid:") }
        return line.flatMap { $0.split(separator: "\t").dropFirst(2).first }.flatMap { UInt32($0) }
    }
}
