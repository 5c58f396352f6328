internal import CPinproxyShims
internal import Glibc
internal import PinproxyEventLoop

/// The numbers of users and groups that a user may use besides its own (subuid(5), subgid(5)).
///
/// Commands that make namespaces of several users (podman, buildah, mmdebstrap) map them. In a namespace of users that
/// has only the user's own number they can't; so these are mapped there as well, each to itself. The kernel lets only
/// newuidmap(1) and newgidmap(1) do so, which look up whether the user may. They have the set-user-ID bit, which counts
/// for nothing inside: the command keeps the two capabilities that they need there.
package struct SubordinateIDs: Sendable, Equatable {
    /// Consecutive numbers.
    package struct Range: Sendable, Equatable {
        let first: UInt32
        let count: UInt32

        package init(first: UInt32, count: UInt32) { (self.first, self.count) = (first, count) }
    }

    /// The kinds of IDs that were mapped.
    struct Mapped: OptionSet {
        let rawValue: UInt8
        static let users = Mapped(rawValue: 1)
        static let groups = Mapped(rawValue: 2)
    }

    /// Further ones are left out: a map has 340 lines.
    private static let mostRanges = 32
    private static let longestFile = 1 << 20
    // <linux/capability.h>
    private static let capabilities: (groups: CInt, users: CInt) = (6, 7)

    package let users: [Range]
    package let groups: [Range]

    package init(users: [Range], groups: [Range]) { (self.users, self.groups) = (users, groups) }

    /// - Returns: this process's user's; nil: none.
    package static func own() -> SubordinateIDs? {
        let user = geteuid()
        let name = getpwuid(user).map { String(cString: $0.pointee.pw_name) }
        let names = [name, "\(user)"].compactMap(\.self)
        let users = ranges(in: contents(of: "/etc/subuid"), of: names)
        let groups = ranges(in: contents(of: "/etc/subgid"), of: names)
        return users.isEmpty || groups.isEmpty ? nil : SubordinateIDs(users: users, groups: groups)
    }

    /// Reads lines of `NAME:FIRST:COUNT`. Invalid lines, and ranges beyond the largest number, are left out.
    package static func ranges(in text: String, of names: [String]) -> [Range] {
        text.split(whereSeparator: \.isNewline).lazy.compactMap { line in
            let fields = line.split(separator: ":", omittingEmptySubsequences: false)
            guard fields.count == 3, names.contains(String(fields[0])), let first = UInt32(fields[1]),
                let count = UInt32(fields[2]), first > 0, count > 0, !first.addingReportingOverflow(count).overflow
            else { return nil }
            return Range(first: first, count: count)
        }.prefix(mostRanges).map(\.self)
    }

    private static func contents(of path: String) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: longestFile)
        var length = 0
        while length < bytes.count {
            let count = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress! + length, $0.count - length) }
            guard count > 0 else { break }
            length += count
        }
        return String(decoding: bytes[..<length], as: UTF8.self)
    }

    // MARK: From outside

    /// Maps them, and this process's own, into the namespace of users that a child has just made.
    /// - Returns: what of that succeeded, for ``Namespaces``. The programs say on standard error why not.
    package func map(into process: Int32) -> UInt8 {
        var mapped: Mapped = []
        if Self.run("newuidmap", process, own: geteuid(), users) { mapped.insert(.users) }
        if mapped.contains(.users), Self.run("newgidmap", process, own: getegid(), groups) { mapped.insert(.groups) }
        return mapped.rawValue
    }

    private static func run(_ program: String, _ process: pid_t, own: UInt32, _ ranges: [Range]) -> Bool {
        let lines = [Range(first: own, count: 1)] + ranges
        var start = ProgramStart(
            program, [program, "\(process)"] + lines.flatMap { ["\($0.first)", "\($0.first)", "\($0.count)"] })
        start.descriptors = [(STDIN_FILENO, .nothing), (STDOUT_FILENO, .descriptor(STDERR_FILENO))]
        start.closesFrom = STDERR_FILENO + 1
        // The terminal's keys end it.
        start.blockedSignals = .empty
        guard let child = try? start.start() else { return false }
        var status: CInt = 0
        while waitpid(child, &status, 0) < 0 { guard errno == EINTR else { return false } }
        return status == 0
    }

    // MARK: Inside

    /// Keeps CAP_SETUID and CAP_SETGID, which reach no further than the namespace, for the programs executed next.
    static func keepCapabilities() throws(IsolationError) {
        for capability in [capabilities.groups, capabilities.users] where shim_keep_capability(capability) != 0 {
            throw IsolationError("the command can't keep its capabilities: \(String(cString: strerror(errno)))")
        }
    }
}
