internal import CSystemd
internal import Foundation

/// Tells systemd what the daemon is doing (sd_notify(3)); without systemd nothing happens.
enum ServiceNotifier {
    static func ready() { sd_notify(0, "READY=1") }

    static func reloading() {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        sd_notify(0, "RELOADING=1\nMONOTONIC_USEC=\(Int(time.tv_sec) * 1_000_000 + Int(time.tv_nsec) / 1000)")
    }

    static func stopping() { sd_notify(0, "STOPPING=1") }
}
