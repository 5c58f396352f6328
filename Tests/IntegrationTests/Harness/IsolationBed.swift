import Foundation
import Testing

/// What tests of `pinproxy exec --isolated` and `--transparent` need from this machine, and share.
enum IsolationBed {
    /// Whether this process may make network namespaces.
    static let isAvailable = Probe.succeeds(
        getuid() == 0 ? ["unshare", "--net", "true"] : ["unshare", "--user", "--net", "true"])
    /// Whether this process may have its own mounts.
    static let isMountable = Probe.succeeds(
        getuid() == 0 ? ["unshare", "--mount", "true"] : ["unshare", "--user", "--mount", "true"])
    /// Whether origins can listen on ports 443 and 80.
    static let isTransparencyAvailable = isAvailable && getuid() == 0
    /// Why only root can test what happens without namespaces.
    static let whyRoot: Comment = "needs root: in the namespace that forbids them, root's directories are nobody's"
    /// Whether an unprivileged user may make them, and is available here.
    static let isAvailableToUsers =
        getuid() == 0
        && Probe.succeeds(asNobody + ["unshare", "--user", "--net", ProxyProcess.executable, "--version"])

    /// Whether buildah can make namespaces with several users in them.
    static let isNestableForUsers =
        isAvailableToUsers
        && ["/usr/bin/buildah", "/usr/bin/newuidmap", "/etc/subuid", "/etc/subgid"].allSatisfy {
            FileManager.default.isReadableFile(atPath: $0)
        }

    /// Runs what follows as an ordinary user.
    static let asNobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]

    /// Runs what follows with a hosts file for the loopback only. Programs read it before they ask the proxy, and the
    /// machine's own file may have any names.
    static let withoutHostsFile = [
        "unshare", "--mount", "sh", "-c",
        "echo 127.0.0.1 localhost > hosts.$$ && mount --bind hosts.$$ /etc/hosts && exec \"$@\"", "sh",
    ]

    /// For `upstream`: the origins of tests are on the loopback, which a command's own network is not.
    static let opensLoopback = "allow_addresses: [loopback]"

    /// A loopback address for this process alone, where origins listen on ports 443 and 80.
    static let address: String = {
        let process = UInt32(getpid())
        return "127.\(64 + process >> 16 & 63).\(process >> 8 & 255).\(max(1, process & 255))"
    }()

    /// Lets any user run commands of the proxy in `folder`.
    /// - Returns: the environment for that.
    static func openToUsers(_ bed: TestBed, folder: String = "proxy") throws -> [String: String] {
        chmod(bed.directory, 0o755)
        for name in ["pinproxy.yaml", "pins.yaml"] { chmod(bed.path("\(folder)/\(name)"), 0o644) }
        let home = bed.path("nobody")
        try FileManager.default.createDirectory(atPath: home, withIntermediateDirectories: true)
        chown(home, 65534, 65534)
        return ["HOME": home, "XDG_STATE_HOME": home + "/state"]
    }
}
