internal import Glibc

/// Reads `clients` of an entry: `{users: [build], units: [ci.service], executables: [/usr/bin/curl]}`.
extension PinEntryReader {
    /// - Returns: nil: everybody may use the entry.
    func clients(_ action: HostAction) -> EntryClients? {
        guard let value = section.nonNull("clients") else { return nil }
        let clients = section.section("clients")
        defer { clients.finish() }
        guard case .mapping = value.content else { return nil }
        let read = EntryClients(
            users: list("users", clients, Form(read: Self.user)), units: list("units", clients, Form(read: Self.unit)),
            executables: list("executables", clients, Form(read: Self.executable)))
        for path in read.executables ?? [] where access(path, F_OK) != 0 {
            section.warning(clients.value("executables") ?? value, "executables: there is no \(path) on this machine")
        }
        if read == EntryClients(), !clients.hasUnreadKeys {
            section.error(
                value, "clients: nothing to check; write users, units or executables")
        }
        if action == .deny {
            section.warning(value, "clients has no effect: the host is denied to everybody")
            return nil
        }
        return read
    }

    private func list<Value>(_ key: String, _ clients: Section, _ form: Form<Value>) -> [Value]? {
        guard let value = clients.nonNull(key), let values = clients.elements(value, key) else { return nil }
        if values.isEmpty { clients.error(value, "\(key): the list is empty, so nobody could use the entry") }
        return values.compactMap { clients.scalar($0, key, form) }
    }

    private static func user(_ text: String) -> Result<EntryClients.User, Reason> {
        if let number = UInt32(text), !text.hasPrefix("+") {
            return .success(EntryClients.User(name: text, number: number))
        }
        guard let entry = getpwnam(text) else {
            return .failure(Reason("there is no user \"\(text)\"; getent passwd shows which there are"))
        }
        return .success(EntryClients.User(name: text, number: entry.pointee.pw_uid))
    }

    /// systemd.unit(5)
    private static let unitKinds = ["service", "scope", "socket", "mount", "swap"]

    private static func unit(_ text: String) -> Result<String, Reason> {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count > 1, let kind = parts.last, unitKinds.contains(String(kind)), !parts[0].isEmpty,
            !text.contains("/")
        else {
            return .failure(
                Reason(
                    """
                    \"\(text)\" is not the name of a unit that processes run in; write e.g. ci.service (systemctl \
                    status PID shows it)
                    """
                ))
        }
        return .success(text)
    }

    /// Symbolic links are followed now: the kernel reports the file that was run.
    private static func executable(_ text: String) -> Result<String, Reason> {
        guard text.hasPrefix("/") else {
            return .failure(Reason("\"\(text)\" is not an absolute path; write e.g. /usr/bin/curl"))
        }
        guard let real = realpath(text, nil) else { return .success(text) }
        defer { free(real) }
        return .success(String(cString: real))
    }
}
