internal import PinproxySession
internal import PinproxyTLS

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
            via: section.read("via", .bool) ?? true,
            http: section.value("http").flatMap { section.protocols($0, "http", to: "clients") } ?? HTTPProtocol.usual)
        section.finish()
        warnIfOpen(settings, section)
        if let value = section.value("http"), settings.http == [.http2] {
            section.warning(
                value,
                "http: programs that support only HTTP/1.1 are refused inside CONNECT; add http/1.1 unless this is "
                    + "intended"
            )
        }
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

    /// Anyone who can reach the port can use the proxy, and with it this machine's place in the network.
    private func warnIfOpen(_ settings: ProxySettings, _ section: Section) {
        guard settings.users == nil, let value = section.value("allow_clients"),
            // The addresses of systemd's sockets are in its units.
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

extension Section {
    /// `listen` of the proxy's port: an address, `unix:PATH`, `systemd`, one with `proxy_protocol`, or a list of these.
    func listen(default address: ListenAddress, relativeTo file: String) -> ListenSettings {
        guard let written = value("listen") else { return ListenSettings(addresses: [address]) }
        let isOne = if case .mapping = written.content { true } else { false }
        guard let values = isOne ? [written] : list("listen") else { return ListenSettings(addresses: [address]) }
        var settings = ListenSettings(addresses: [])
        for value in values {
            switch value.content {
            case .scalar("systemd"): settings.takesInherited = true
            case .mapping: listenWithHeader(value, &settings)
            default:
                let form = Form { ListenPlace.parse($0, relativeTo: file) }
                guard let place = scalar(value, "listen", form) else { continue }
                add(place, value, to: &settings)
            }
        }
        if values.isEmpty { error(written, "listen: the list is empty; write an address, or systemd") }
        return settings
    }

    private func add(_ place: ListenPlace, _ value: YAMLValue, to settings: inout ListenSettings) {
        switch place {
        case .address(let address):
            if address.port != 0, settings.addresses.contains(address) {
                error(value, "listen: \(address) is written twice")
            }
            settings.addresses.append(address)
        case .unix(let path):
            if settings.paths.contains(path) { error(value, "listen: \(place) is written twice") }
            settings.paths.append(path)
        }
    }

    /// `{address: 192.0.2.1:7467, proxy_protocol: [192.0.2.10]}`
    private func listenWithHeader(_ value: YAMLValue, _ settings: inout ListenSettings) {
        let item = element("listen", value)
        defer { item.finish() }
        let senders = item.list("proxy_protocol")
        guard let written = item.value("address") else {
            return error(
                value,
                "listen: \"address\" is missing; write e.g. {address: 192.0.2.1:7467, proxy_protocol: [192.0.2.10]}")
        }
        guard let address = item.scalar(written, "address", Form(read: Self.headerAddress)) else { return }
        guard let senders else {
            return error(
                value,
                "listen: \"proxy_protocol\" is missing: list the trusted senders of PROXY headers, or write the "
                    + "address alone")
        }
        if senders.isEmpty {
            error(
                value,
                "proxy_protocol: the list is empty, so nobody could connect; write the addresses of the load balancers")
        }
        let ranges = senders.compactMap { item.scalar($0, "proxy_protocol", Form(read: AddressRange.parse)) }
        for (sender, range) in zip(senders, ranges) where range.prefixLength == 0 {
            warning(
                sender,
                """
                proxy_protocol: everybody who can reach the port may claim to be any client; write the addresses of \
                the load balancers
                """
            )
        }
        add(.address(address), written, to: &settings)
        settings.proxyProtocol[address] = ranges
    }

    private static func headerAddress(_ text: String) -> Result<ListenAddress, Reason> {
        if text == "systemd" || text.hasPrefix("unix:") {
            return .failure(Reason("\"\(text)\" takes no PROXY headers; write an address and a port"))
        }
        return ListenAddress.parse(text).flatMap { address in
            address.port != 0
                ? .success(address) : .failure(Reason("\"\(text)\": write a port, which the load balancer has to know"))
        }
    }
}

extension DaemonFileReader {
    func users(_ section: Section) -> UserFile? {
        guard let value = section.nonNull("users"), let written = section.scalar(value, "users", .path) else {
            return nil
        }
        let path = FileContents.resolve(written, relativeTo: file)
        guard readsPrivateFiles else { return UserFile(path: path, lines: []) }
        switch FileContents.read(path, limit: 16 << 20) {
        case .failure(let reason):
            section.error(value, "users: \(path): \(reason.text)")
            return nil
        case .success(let bytes):
            guard let text = String(validating: bytes, as: UTF8.self) else {
                section.error(value, "users: \(path) is not UTF-8")
                return nil
            }
            return read(text, path, section, value)
        }
    }

    private func read(_ text: String, _ path: String, _ section: Section, _ value: YAMLValue) -> UserFile {
        var lines: [String] = []
        var names: [Substring: Int] = [:]
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            guard let first = line.first, first != "#" else { continue }
            let place = Place(file: path, line: index + 1, column: 1)
            guard let colon = line.firstIndex(of: ":"), colon != line.startIndex else {
                section.error(place, "expected NAME:HASH; make the line with: htpasswd -nB NAME")
                continue
            }
            let name = line[..<colon]
            if line[line.index(after: colon)...].wholeMatch(of: /\$2[aby]\$[0-9]{2}\$[.\/A-Za-z0-9]{53}/) == nil {
                section.error(
                    place, "the password of \"\(name)\" is not a bcrypt hash; make the line with: htpasswd -nB \(name)")
            }
            if name == "pinproxy-run" {
                section.error(
                    place, "\"pinproxy-run\" is the name that runs of pinproxy exec are known by: choose another")
            }
            if let before = names.updateValue(index + 1, forKey: name) {
                section.error(place, "user \"\(name)\" is already in line \(before)")
            }
            lines.append(String(line))
        }
        if lines.isEmpty { section.warning(value, "users: \(path) has no users, so nobody can use the proxy") }
        return UserFile(path: path, lines: lines)
    }
}
