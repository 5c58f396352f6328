internal import CPinproxySystemd
internal import Glibc
internal import PinproxyDaemon
internal import PinproxyEventLoop

/// Tells systemd what the daemon is doing (sd_notify(3)); without systemd nothing happens.
enum ServiceNotifier {
    static func ready() { tell("READY=1") }

    private static func tell(_ state: String) { _ = SystemdLibrary.ofService?.notify(0, state) }

    static func reloading() {
        tell("RELOADING=1\nMONOTONIC_USEC=\(MonotonicTime.now().nanoseconds / 1000)")
    }

    static func stopping() { tell("STOPPING=1") }

    /// Feeds the watchdog, and says for `systemctl status` what the proxy does.
    static func alive(_ status: String) { tell("WATCHDOG=1\nSTATUS=\(status)") }

    /// The interval of watchdog notifications: a third of the unit's WatchdogSec; nil: none.
    static var watchdogNanoseconds: UInt64? {
        var microseconds: UInt64 = 0
        guard let library = SystemdLibrary.ofService, library.watchdogEnabled(0, &microseconds) > 0, microseconds > 0
        else { return nil }
        return microseconds * 1000 / 3
    }

    /// Leaves a copy of a listening socket with systemd, which hands it to the next process: clients that come in
    /// between wait, and are not refused (FileDescriptorStoreMax= of systemd.service(5)).
    static func store(_ descriptor: CInt, _ name: String) {
        var descriptor = descriptor
        _ = SystemdLibrary.ofService?.pidNotifyWithFDs(0, 0, "FDSTORE=1\nFDNAME=\(name)", &descriptor, 1)
    }

    static func forget(_ name: String) { tell("FDSTOREREMOVE=1\nFDNAME=\(name)") }

    /// Takes over what systemd has handed to the process that has started this one.
    static func adoptSockets() {
        if getenv("LISTEN_FDS") != nil { setenv("LISTEN_PID", "\(getpid())", 1) }
    }

    /// Closes the sockets that systemd has passed, which another process has now.
    static func closeSockets() {
        let count = SystemdLibrary.ofService?.listenFDs(1) ?? 0
        for descriptor in 0..<max(count, 0) { close(SD_LISTEN_FDS_START + descriptor) }
    }

    /// The socket of pinproxy-signer.socket; nil: systemd hands over none.
    static func signerSocket() -> CInt? {
        guard let library = SystemdLibrary.ofService else { return nil }
        let count = library.listenFDs(1)
        guard count > 0 else { return nil }
        return (SD_LISTEN_FDS_START..<SD_LISTEN_FDS_START + count).first {
            guard library.isSocketUnix($0, Int32(SOCK_SEQPACKET.rawValue), 1, nil, 0) > 0 else { return false }
            _ = fcntl($0, F_SETFL, fcntl($0, F_GETFL) | O_NONBLOCK)
            return true
        }
    }

    /// The listening sockets that systemd hands over: those of pinproxy.socket, and those that the process before has
    /// left. To be called once, since other programs that this one starts must not take them for theirs.
    static func sockets() -> [InheritedSocket] {
        guard let library = SystemdLibrary.ofService else { return [] }
        var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
        let count = library.listenFDsWithNames(1, &names)
        guard count > 0, let names else { return [] }
        defer {
            for index in 0..<Int(count) { free(names[index]) }
            free(names)
        }
        return (0..<count).map { index in
            let descriptor = SD_LISTEN_FDS_START + index
            return InheritedSocket(
                raw: descriptor, name: names[Int(index)].map { String(cString: $0) } ?? "",
                isListener: library.isSocketInet(descriptor, AF_UNSPEC, Int32(SOCK_STREAM.rawValue), 1, 0) > 0)
        }
    }
}
