internal import Session
internal import TLS

extension DaemonFileReader {
    func proxy(_ section: Section) -> ProxySettings {
        let settings = ProxySettings(
            listen: section.listen(default: ListenAddress(ip: "127.0.0.1", port: 7467), relativeTo: file),
            socket: socketAccess(section),
            tls: identity(section),
            speaksTLS: section.nonNull("tls") != nil,
            workers: section.read("workers", .workers) ?? nil,
            users: users(section),
            allowClients: allowClients(section),
            via: section.read("via", .bool) ?? true)
        section.finish()
        warnIfOpen(settings, section)
        return settings
    }

    private func identity(_ section: Section) -> Identity? {
        guard let value = section.nonNull("tls") else { return nil }
        let tls = section.section("tls")
        defer { tls.finish() }
        guard readsPrivateFiles else {
            for key in ["certificate", "private_key"] { _ = tls.value(key) }
            return nil
        }
        return IdentityReader(section: tls, file: file, parent: value, name: "tls", isKeyPrivate: false).identity()
    }

    private func allowClients(_ section: Section) -> [AddressRange] {
        guard let values = section.list("allow_clients") else {
            return ["127.0.0.0/8", "::1"].compactMap { try? AddressRange.parse($0).get() }
        }
        if values.isEmpty, let value = section.value("allow_clients") {
            section.error(value, "allow_clients: the list is empty, so nobody could connect")
        }
        return values.compactMap { section.scalar($0, "allow_clients", Form(read: AddressRange.parse)) }
    }

    /// Who can reach the port and is asked nothing can use the proxy, and this machine's place in
    /// the network with it.
    private func warnIfOpen(_ settings: ProxySettings, _ section: Section) {
        guard settings.users == nil, let value = section.value("allow_clients"),
            // Which addresses systemd's sockets have, its units say.
            settings.listen.takesInherited || settings.listen.addresses.contains(where: { !$0.isLoopback }),
            settings.allowClients.contains(where: { $0.prefixLength == 0 })
        else { return }
        section.warning(value, "everybody who can reach the port may use this proxy; name the networks, or set users")
    }
}

extension Form where Value == Int? {
    fileprivate static var workers: Form {
        Form { text in
            if text == "auto" { return .success(nil) }
            switch Form<Int>.integer(1...1024).read(text) {
            case .success(let count): return .success(count)
            case .failure(let reason): return .failure(Reason("\(reason.text), or auto for one a core"))
            }
        }
    }
}
