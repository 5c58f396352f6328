internal import PinproxyConfiguration
internal import Glibc
internal import PinproxyIsolation
internal import PinproxySecurity
internal import PinproxyTLS

/// Whether a command sees the proxy's authority in the system's trust stores, and what is said of that.
struct CommandTrust {
    enum Wish {
        /// As far as it can be had.
        case unasked
        /// `--trust`
        case required
        /// `--no-trust`
        case refused
    }

    /// They act for another user, which they can't in a namespace of users. As root they can.
    private static let unfit: Set<String> = [
        "sudo", "sudoedit", "su", "doas", "pkexec", "run0", "newgrp", "snap", "fusermount", "fusermount3",
    ]
    /// They make namespaces of several users, by programs with the set-user-ID bit (newuidmap(1)).
    private static let ofNamespaces: Set<String> = ["buildah", "mmdebstrap", "newuidmap", "newgidmap"]
    /// podman too. It copies the map of a namespace where it may map users itself, and so has no root there.
    private static let copying: Set<String> = ["podman", "podman-compose"]
    /// They change what others see: mounts, or the trust stores.
    private static let changing: Set<String> = [
        "mount", "umount", "apt", "apt-get", "aptitude", "dpkg", "update-ca-certificates", "update-ca-trust",
    ]

    let wish: Wish
    /// A name or a path.
    let command: String
    var isRoot = geteuid() == 0
    /// Finds this user's; nil: the user has no such numbers, or they can't be mapped.
    var findSubordinates: () -> SubordinateIDs? = {
        ChildCommand.path(of: "newuidmap") == nil ? nil : SubordinateIDs.own()
    }

    private var isOfNamespaces: Bool { !isRoot && Self.ofNamespaces.contains(PathText.name(of: command)) }

    /// What its namespace of users needs to have; nil: nothing but its user.
    var subordinates: SubordinateIDs? { isOfNamespaces ? findSubordinates() : nil }

    /// It fails in a namespace of users.
    private var isUnfit: Bool {
        if isOfNamespaces { return subordinates == nil }
        let name = PathText.name(of: command)
        return !isRoot && (Self.unfit.contains(name) || Self.copying.contains(name))
    }

    /// What to say before it runs in one all the same; nil: nothing.
    var warning: String? {
        guard isUnfit else { return nil }
        let name = command.printable
        if isOfNamespaces {
            return "pinproxy: \(name) makes namespaces of several users, for which its user needs numbers of others: "
                + "lines in /etc/subuid and /etc/subgid, and newuidmap (package uidmap); or run it as root, or without "
                + "--isolated, --transparent and --trust"
        }
        return Self.copying.contains(PathText.name(of: command))
            ? "pinproxy: \(name) makes namespaces of several users, which it can't in a namespace of its own: "
                + "run it as root, or without --isolated, --transparent and --trust; buildah can"
            : """
            pinproxy: \(name) acts for another user, which a command can't in a namespace of its own: run it \
            outside, or as root
            """
    }

    /// Nil: the trust stores stay as they are.
    func stores(
        _ trust: TrustFiles, _ environment: [String: String], settings: [AddedSettings] = []
    ) -> SystemTrust? {
        let name = PathText.name(of: command)
        return switch wish {
        case .refused: nil
        case .unasked where Self.changing.contains(name) || isUnfit: nil
        case .unasked, .required:
            SystemTrust(
                bundle: trust.bundle, javaStore: trust.javaStore, authorities: trust.hashed,
                bundled: BundledTrust.files(for: command, environment), settings: settings)
        }
    }

    /// Said when a command has it unasked.
    static let given =
        "pinproxy: commands see the proxy's authority in the system's trust stores, by mounts of their own that end "
        + "with them; --no-trust leaves it out, as sudo and other set-user-ID programs need it (said once)"

    /// Said when it can't be had.
    static func missing(_ cause: String) -> String {
        "pinproxy: programs that read the system's trust stores don't trust the proxy's authority: \(cause); those "
            + "that take it from environment variables do. For all: sudo pinproxy ca install (said once)"
    }
}

/// What has been said to this user, so that it is not said again.
struct SaidOnce {
    static let name = "exec.said"
    /// Beyond it the oldest line may be said again.
    private static let limit = 16

    /// Those in which it may stand: the first that can be written has it.
    let directories: [TrustedDirectory]

    func say(_ line: String) {
        let said = directories.map { directory in
            ((try? directory.read(Self.name))?.bytes).map {
                String(decoding: $0, as: UTF8.self).split(separator: "\n").map(String.init)
            } ?? []
        }
        guard !said.contains(where: { $0.contains(line) }) else { return }
        Standard.error(line)
        for (directory, lines) in zip(directories, said) {
            let bytes = (lines.suffix(Self.limit - 1) + [line]).flatMap { Array("\($0)\n".utf8) }
            guard (try? directory.create()) != nil, (try? directory.requireOwn()) != nil,
                (try? directory.write(bytes, to: Self.name, mode: 0o644)) != nil
            else { continue }
            return
        }
    }
}
