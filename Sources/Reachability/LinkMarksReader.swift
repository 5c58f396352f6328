internal import Glibc

/// Reads marks of links from sysfs. Unreadable ones are absent.
struct LinkMarksReader {
    /// `/sys/class/net`, except in tests.
    let folder: String

    func marks(of name: String) -> LinkMarks {
        // Guards the path; the kernel allows none of these.
        guard !name.isEmpty, name != ".", name != "..", !name.contains("/") else { return LinkMarks() }
        let link = "\(folder)/\(name)"
        return LinkMarks(
            isWireless: access("\(link)/wireless", F_OK) == 0 || access("\(link)/phy80211", F_OK) == 0,
            deviceType: deviceType(in: "\(link)/uevent"))
    }

    private func deviceType(in path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = read(descriptor, &bytes, bytes.count)
        guard count > 0 else { return nil }
        let key = "DEVTYPE="
        return String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: "\n")
            .first { $0.hasPrefix(key) }.map { String($0.dropFirst(key.count)) }
    }
}
