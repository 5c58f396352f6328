internal import CPinproxySystemd
internal import Glibc
internal import PinproxySerialization

/// libsystemd, loaded at first use: only services need it, and it makes the start of each command longer.
enum SystemdLibrary {
    /// Nil if it isn't installed.
    static let functions = OptionalLibrary.load(SHIM_SYSTEMD_FILE, shim_systemd(), shim_systemd_load)

    /// The library for a process that systemd has started as a service; nil for others.
    static let ofService: shim_systemd? = {
        guard let name = variables.first(where: { getenv($0) != nil }) else { return nil }
        if functions == nil {
            Standard.error(
                "pinproxy: \(SHIM_SYSTEMD_FILE) can't be loaded, so systemd, which has set \(name), hears nothing of "
                    + "this process, and sockets that it hands over aren't taken: install libsystemd0")
        }
        return functions
    }()

    /// Variables that systemd sets for notifications and passed sockets (systemd.exec(5)).
    private static let variables = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS"]
}
