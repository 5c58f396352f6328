internal import Glibc
internal import PinproxyHTTPWire
internal import PinproxyTLS

extension DaemonFileReader {
    /// - Parameter proxy: where the proxy itself listens.
    func admin(_ root: Section, proxy: ListenSettings) -> AdminSettings {
        var settings = AdminSettings()
        guard let written = root.nonNull("admin") else { return settings }
        let section = root.section("admin")
        defer { section.finish() }
        let places = adminPlaces(section, proxy: proxy, &settings)
        settings.listen = places.map(\.place)
        if let value = section.nonNull("tls"), readsPrivateFiles {
            let tls = section.section("tls")
            defer { tls.finish() }
            settings.tls = IdentityReader(section: tls, file: file, parent: value, name: "tls", isKeyPrivate: false)
                .identity()
        }
        if let value = section.nonNull("token_file"), readsPrivateFiles { settings.token = token(value, section) }
        settings.hosts = adminHosts(section)
        settings.socket = socketAccess(section)
        let others = ["tls", "token_file", "hosts", "socket_mode", "socket_group"]
        if section.nonNull("listen") == nil, others.contains(where: { section.nonNull($0) != nil }) {
            section.warning(
                written, "admin: \"listen\" is missing, so there is no admin port; write e.g. listen: 127.0.0.1:7468")
        }
        // Anyone who can reach it could read which hosts are requested, and control tasks.
        for (value, place) in places where !place.isLocal {
            var missing: [String] = []
            if section.nonNull("tls") == nil { missing.append("tls") }
            if section.nonNull("token_file") == nil { missing.append("token_file") }
            guard !missing.isEmpty else { continue }
            section.error(
                value,
                "listen: other machines can reach \(place), so \(missing.joined(separator: " and ")) must be set too; "
                    + "or listen on 127.0.0.1 or a Unix socket (unix:/run/pinproxy/admin.sock)")
        }
        return settings
    }

    private func adminPlaces(
        _ section: Section, proxy: ListenSettings, _ settings: inout AdminSettings
    ) -> [(value: YAMLValue, place: ListenPlace)] {
        guard let value = section.nonNull("listen"), let list = section.elements(value, "listen") else { return [] }
        var places: [(value: YAMLValue, place: ListenPlace)] = []
        for value in list {
            if case .scalar("systemd") = value.content {
                settings.takesInherited = true
                continue
            }
            let form = Form { ListenPlace.parse($0, relativeTo: file) }
            guard let place = section.scalar(value, "listen", form) else { continue }
            switch place {
            case .address(let address) where address.port != 0 && proxy.addresses.contains(address):
                section.error(
                    value, "listen: \(address) is where the proxy listens (proxy.listen); choose another port")
            case .unix(let path) where proxy.paths.contains(path):
                section.error(value, "listen: \(place) is where the proxy listens (proxy.listen); choose another path")
            default: break
            }
            let isAnyPort = if case .address(let address) = place { address.port == 0 } else { false }
            if !isAnyPort, places.contains(where: { $0.place == place }) {
                section.error(value, "listen: \(place) is written twice")
            }
            places.append((value, place))
        }
        return places
    }

    private static let shortestToken = 16

    private func token(_ value: YAMLValue, _ section: Section) -> SHA256Digest? {
        guard let text = SecretReader(section: section, file: file).secret(value, "token_file") else { return nil }
        let advice = "make one with: openssl rand -hex 32"
        guard text.utf8.count >= Self.shortestToken else {
            section.error(value, "token_file: the token has fewer than \(Self.shortestToken) characters; \(advice)")
            return nil
        }
        // RFC 6750 section 2.1
        let isSendable = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "-._~+/=".utf8.contains(byte)
            }
        }
        guard isSendable else {
            section.error(value, "token_file: a token consists of letters, digits and - . _ ~ + / =; \(advice)")
            return nil
        }
        return SHA256Digest.of(Array(text.utf8))
    }

    /// Names that a browser may have asked for.
    private func adminHosts(_ section: Section) -> [String] {
        guard let value = section.nonNull("hosts"), let list = section.elements(value, "hosts") else { return [] }
        return list.compactMap { value in
            section.scalar(
                value, "hosts",
                Form { text in
                    guard case .failure = Authority.parse(text, defaultPort: nil) else {
                        return .failure(Reason("\"\(text)\": leave out the port"))
                    }
                    switch Authority.parse(text, defaultPort: 80) {
                    case .success(let authority): return .success(authority.host)
                    case .failure(let error): return .failure(Reason("\"\(text)\": \(error); write a host name"))
                    }
                })
        }
    }

    func socketAccess(_ section: Section) -> SocketAccess {
        var access = SocketAccess()
        access.mode = section.readOptional("socket_mode", .fileMode) ?? access.mode
        if access.mode & 0o002 != 0, let value = section.nonNull("socket_mode") {
            section.warning(
                value,
                """
                socket_mode: every user of this machine may connect; write \"0660\", with socket_group for the users \
                that may
                """
            )
        }
        access.group = section.readOptional("socket_group", .group)
        return access
    }
}

extension Form where Value == UInt32 {
    /// The permissions of a file, in octal.
    static var fileMode: Form {
        Form { text in
            let digits = text.hasPrefix("0o") ? text.dropFirst(2) : text[...]
            guard let mode = UInt32(digits, radix: 8), mode <= 0o777, digits.utf8.count >= 3, !digits.hasPrefix("+")
            else {
                return .failure(Reason("\"\(text)\" is not a file mode; write e.g. \"0660\""))
            }
            return .success(mode)
        }
    }

    static var group: Form {
        Form { text in
            if let number = UInt32(text), !text.hasPrefix("+") { return .success(number) }
            guard let entry = getgrnam(text) else {
                return .failure(Reason("there is no group \"\(text)\"; getent group shows which there are"))
            }
            return .success(entry.pointee.gr_gid)
        }
    }
}
