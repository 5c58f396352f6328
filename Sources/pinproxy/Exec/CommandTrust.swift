internal import Glibc
internal import PinproxyConfiguration
internal import PinproxyIsolation
internal import PinproxySecurity
internal import PinproxyTLS

/// Whether a command sees the proxy's authority in the system's trust stores, and the messages about that.
struct CommandTrust {
    enum Wish {
        /// Neither option: shown if possible.
        case unasked
        /// `--trust`
        case required
        /// `--no-trust`
        case refused
    }

    /// Programs that act for another user. They can't in a user namespace, except for root.
    private static let unfit: Set<String> = [
        "sudo", "sudoedit", "su", "doas", "pkexec", "run0", "newgrp", "snap", "fusermount", "fusermount3",
    ]
    /// Programs that make namespaces of several users, by set-user-ID programs (newuidmap(1)).
    private static let ofNamespaces: Set<String> = ["buildah", "mmdebstrap", "newuidmap", "newgidmap"]
    /// podman too. Where it may map users itself, it copies the map of the namespace, and so has no root there.
    private static let copying: Set<String> = ["podman", "podman-compose"]
    /// Programs that change mounts or trust stores for others.
    private static let changing: Set<String> = [
        "mount", "umount", "apt", "apt-get", "aptitude", "dpkg", "update-ca-certificates", "update-ca-trust",
    ]

    let wish: Wish
    /// A name or a path.
    let command: String
    var isRoot = geteuid() == 0
    /// Finds this user's subordinate IDs; nil: the user has no such IDs, or they can't be mapped.
    var findSubordinates: () -> SubordinateIDs? = {
        ChildCommand.path(of: "newuidmap") == nil ? nil : SubordinateIDs.own()
    }

    private var isOfNamespaces: Bool { !isRoot && Self.ofNamespaces.contains(PathText.name(of: command)) }

    /// The subordinate IDs that its user namespace needs; nil: only its user.
    var subordinates: SubordinateIDs? { isOfNamespaces ? findSubordinates() : nil }

    /// It fails in a user namespace.
    private var isUnfit: Bool {
        if isOfNamespaces { return subordinates == nil }
        let name = PathText.name(of: command)
        return !isRoot && (Self.unfit.contains(name) || Self.copying.contains(name))
    }

    /// The warning before it runs in one anyway; nil: no warning.
    var warning: String? {
        guard isUnfit else { return nil }
        let name = command.printable
        if isOfNamespaces {
            return "pinproxy: \(name) creates user namespaces with several users, which requires subordinate IDs: "
                + "entries in /etc/subuid and /etc/subgid, and newuidmap (package uidmap); or run it as root, or "
                + "without --isolated, --transparent and --trust"
        }
        return Self.copying.contains(PathText.name(of: command))
            ? "pinproxy: \(name) creates user namespaces with several users, which it can't in a private user "
                + "namespace: run it as root, or without --isolated, --transparent and --trust; buildah can"
            : """
            pinproxy: \(name) acts for another user, which a command can't in a private user namespace: run it \
            outside, or as root
            """
    }

    /// Nil: the trust stores don't change.
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

    /// Said when a command has it by default.
    static let given =
        "pinproxy: commands see the proxy's authority in the system's trust stores, by private mounts that end with "
        + "them; --no-trust disables this, for sudo and other set-user-ID programs (shown once)"

    /// Said when it isn't possible.
    static func missing(_ cause: String) -> String {
        "pinproxy: programs that read the system's trust stores don't trust the proxy's authority: \(cause); those "
            + "that take it from environment variables do. To make all programs trust it: sudo pinproxy "
            + "ca install (shown once)"
    }
}

/// Messages already shown to this user, so that they aren't repeated.
struct SaidOnce {
    static let name = "exec.said"
    /// Beyond this number the oldest line may be repeated.
    private static let limit = 16

    /// Directories that may hold the file: the first writable one has it.
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
