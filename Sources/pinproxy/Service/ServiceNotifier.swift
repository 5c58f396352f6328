internal import CSystemd
internal import Daemon
internal import Glibc

/// Tells systemd what the daemon is doing (sd_notify(3)); without systemd nothing happens.
enum ServiceNotifier {
    static func ready() { sd_notify(0, "READY=1") }

    static func reloading() {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        sd_notify(0, "RELOADING=1\nMONOTONIC_USEC=\(Int(time.tv_sec) * 1_000_000 + Int(time.tv_nsec) / 1000)")
    }

    static func stopping() { sd_notify(0, "STOPPING=1") }

    /// Feeds the watchdog, and says for `systemctl status` what the proxy does.
    static func alive(_ status: String) { sd_notify(0, "WATCHDOG=1\nSTATUS=\(status)") }

    /// How often the watchdog wants to be fed: three times within the time that the unit allows; nil: not at all.
    static var watchdogNanoseconds: UInt64? {
        var microseconds: UInt64 = 0
        guard sd_watchdog_enabled(0, &microseconds) > 0, microseconds > 0 else { return nil }
        return microseconds * 1000 / 3
    }

    /// Leaves a copy of a listening socket with systemd, which hands it to the next process: clients that come in
    /// between wait, and are not refused (FileDescriptorStoreMax= of systemd.service(5)).
    static func store(_ descriptor: CInt, _ name: String) {
        var descriptor = descriptor
        sd_pid_notify_with_fds(0, 0, "FDSTORE=1\nFDNAME=\(name)", &descriptor, 1)
    }

    static func forget(_ name: String) { sd_notify(0, "FDSTOREREMOVE=1\nFDNAME=\(name)") }

    /// Takes over what systemd has handed to the process that has started this one.
    static func adoptSockets() {
        if getenv("LISTEN_FDS") != nil { setenv("LISTEN_PID", "\(getpid())", 1) }
    }

    /// Closes what systemd has handed over, which another process has by now.
    static func closeSockets() {
        for descriptor in 0..<max(sd_listen_fds(1), 0) { close(SD_LISTEN_FDS_START + descriptor) }
    }

    /// The socket of pinproxy-signer.socket; nil: systemd hands over none.
    static func signerSocket() -> CInt? {
        let count = sd_listen_fds(1)
        guard count > 0 else { return nil }
        return (SD_LISTEN_FDS_START..<SD_LISTEN_FDS_START + count).first {
            guard sd_is_socket_unix($0, Int32(SOCK_SEQPACKET.rawValue), 1, nil, 0) > 0 else { return false }
            _ = fcntl($0, F_SETFL, fcntl($0, F_GETFL) | O_NONBLOCK)
            return true
        }
    }

    /// The listening sockets that systemd hands over: those of pinproxy.socket, and those that the process before has
    /// left. To be called once, since other programs that this one starts must not take them for theirs.
    static func sockets() -> [InheritedSocket] {
        var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
        let count = sd_listen_fds_with_names(1, &names)
        guard count > 0, let names else { return [] }
        defer {
            for index in 0..<Int(count) { free(names[index]) }
            free(names)
        }
        return (0..<count).map { index in
            let descriptor = SD_LISTEN_FDS_START + index
            return InheritedSocket(
                raw: descriptor, name: names[Int(index)].map { String(cString: $0) } ?? "",
                isListener: sd_is_socket_inet(descriptor, AF_UNSPEC, Int32(SOCK_STREAM.rawValue), 1, 0) > 0)
        }
    }
}
