internal import Glibc

/// Why the kernel makes no namespace, and who can change that.
enum NamespaceRefusal {
    enum Kind: String {
        case user, network, mount

        /// Of user.max_NAME_namespaces.
        var counter: String {
            switch self {
            case .user: "user"
            case .network: "net"
            case .mount: "mnt"
            }
        }
    }

    /// The files below /proc/sys that forbid it, what they have then, and what to do.
    private static let settings: [(name: String, forbids: @Sendable (Int) -> Bool, advice: String)] = [
        ("kernel/unprivileged_userns_clone", { $0 == 0 }, "set it to 1 (sysctl kernel.unprivileged_userns_clone=1)"),
        ("user/max_user_namespaces", { $0 == 0 }, "raise it (sysctl user.max_user_namespaces=10000)"),
        ("user/max_net_namespaces", { $0 == 0 }, "raise it (sysctl user.max_net_namespaces=10000)"),
        ("user/max_mnt_namespaces", { $0 == 0 }, "raise it (sysctl user.max_mnt_namespaces=10000)"),
        (
            "kernel/apparmor_restrict_unprivileged_userns", { $0 == 1 },
            "set it to 0, or give pinproxy an AppArmor profile that has \"userns,\""
        ),
    ]

    /// The setting that forbids it, if one is found; `number` reads a file below /proc/sys.
    static func hint(_ number: (String) -> Int?) -> String? {
        for (name, forbids, advice) in settings {
            guard let value = number(name), forbids(value) else { continue }
            return "\(name.replacing("/", with: ".")) is \(value): \(advice), or run this as root"
        }
        return nil
    }

    /// - Parameter code: an `errno`.
    static func error(_ code: CInt, of kind: Kind, _ number: (String) -> Int?) -> IsolationError {
        var words = "the kernel makes no \(kind) namespace for the command: \(String(cString: strerror(code)))"
        if let hint = hint(number) {
            words += "; \(hint)"
        } else if code == ENOSPC || code == EUSERS {
            words += "; there are as many as user.max_\(kind.counter)_namespaces lets there be, or they are 32 deep"
        } else if code == EINVAL || code == ENOSYS {
            words += "; it was built without them"
        } else {
            words += "; a container or a seccomp filter may forbid it: run this outside, or as root"
        }
        return IsolationError(words)
    }
}
