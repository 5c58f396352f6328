internal import Glibc

/// Reads the marks of links from sysfs. What can't be read is no mark.
struct LinkMarksReader {
    /// Where links are folders: `/sys/class/net`, but for tests.
    let folder: String

    func marks(of name: String) -> LinkMarks {
        // The kernel allows neither, and a path must not be made of anything else.
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
