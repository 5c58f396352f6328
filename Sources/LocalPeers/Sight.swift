internal import Glibc

/// Processes that this one may examine. `/proc/PID/exe` and `/proc/PID/fd` need PTRACE_MODE_READ (ptrace(2)),
/// `ProtectProc=invisible` hides others, and only the owner may open `/proc/PID/fd`.
package enum Sight: Sendable, Equatable {
    /// All, with CAP_SYS_PTRACE, and CAP_DAC_READ_SEARCH or CAP_DAC_OVERRIDE.
    case everything
    case own(UInt32)

    package static var current: Sight {
        let status = ProcFile.read("/proc/self/status") ?? ""
        return of(status: status, user: geteuid(), isInitialNamespace: UserNamespace.isInitial)
    }

    /// - Parameter status: `/proc/self/status`
    static func of(status: String, user: UInt32, isInitialNamespace: Bool) -> Sight {
        let line = status.split(separator: "\n").first { $0.hasPrefix("CapEff:") }
        let effective = line.flatMap { UInt64($0.dropFirst(7).drop { $0 == "\t" || $0 == " " }, radix: 16) } ?? 0
        let isEnough = effective & tracing != 0 && effective & reading != 0
        // In another user namespace capabilities only cover its own processes.
        return isEnough && isInitialNamespace ? .everything : .own(user)
    }

    /// CAP_SYS_PTRACE
    private static let tracing: UInt64 = 1 << 19
    /// CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    private static let reading: UInt64 = 1 << 1 | 1 << 2

    /// Whether the user's processes can be examined.
    package func covers(_ user: UInt32) -> Bool {
        switch self {
        case .everything: true
        case .own(let own): own == user
        }
    }
}

/// This process's user namespace (user_namespaces(7)).
package enum UserNamespace {
    /// User numbers are the machine's.
    package static let isInitial = isComplete(map: ProcFile.read("/proc/self/uid_map") ?? "")

    /// - Parameter map: `/proc/self/uid_map`
    static func isComplete(map: String) -> Bool {
        map.split(separator: "\n").map { $0.split(whereSeparator: { $0 == " " || $0 == "\t" }) } == [
            ["0", "0", "4294967295"]
        ]
    }

    /// The number of all unmapped users. The file can't be read with ProcSubset=pid.
    private static let overflow =
        ProcFile.read("/proc/sys/kernel/overflowuid").flatMap { UInt32($0.prefix { $0.isNumber }) } ?? 65534

    /// Whether the number identifies a user.
    static func knows(_ user: UInt32) -> Bool { isInitial || user != overflow }
}
