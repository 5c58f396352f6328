internal import FoundationEssentials
internal import Glibc
internal import PinproxyConfiguration
internal import PinproxyDaemon
internal import PinproxyEventLoop

/// The proxy's URL for programs of this machine.
struct ProxyURL: CustomStringConvertible {
    private static let variables = [
        "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy",
    ]

    var scheme: String
    /// An address, without brackets.
    var host: String
    var port: UInt16
    /// `NAME:PASSWORD`, percent-encoded.
    var credentials: String?

    /// The first address that is listened on, a loopback one for "all addresses".
    /// - Parameter running: where the running proxy listens, which counts more than its file; empty: it wasn't asked.
    init(_ settings: ProxySettings, inherited: ListenFile, running: [String] = []) throws {
        let (known, running) = (Self.known(settings, inherited), running.compactMap { ListenAddress($0) })
        guard let address = running.isEmpty ? known.first : known.first(where: running.contains) ?? running.first else {
            let listen = settings.listen
            if !listen.takesInherited, !listen.addresses.contains(where: { $0.port == 0 }) {
                throw CommandFailure(
                    "the proxy listens where programs can't be sent by a URL (proxy.listen has only Unix sockets and "
                        + "addresses with proxy_protocol): add an address, e.g. 127.0.0.1:7467")
            }
            throw CommandFailure(
                settings.listen.takesInherited
                    ? "proxy.listen is systemd, and no proxy has left word of its sockets (\(inherited.path)): "
                        + "start it once (systemctl start pinproxy)"
                    : "the port of the proxy is chosen when it starts (listen: …:0), so it can't be known here")
        }
        scheme = settings.speaksTLS ? "https" : "http"
        port = address.port
        host =
            switch address.ip {
            case "0.0.0.0": "127.0.0.1"
            case "::": "::1"
            default: address.ip
            }
    }

    /// The addresses where it listens, as far as they are known without asking it.
    private static func known(_ settings: ProxySettings, _ inherited: ListenFile) -> [ListenAddress] {
        settings.listen.directAddresses.filter { $0.port != 0 }
            + (settings.listen.takesInherited ? inherited.read().compactMap { ListenAddress($0) } : [])
    }

    /// Programs that take a URL with a name and a password in it for another one: lynx forgets the port.
    static func mustBePlain(for command: String) -> Bool { command.split(separator: "/").last == "lynx" }

    /// The name and the password for the proxy in this process's variables.
    static func given(to settings: ProxySettings, inherited: ListenFile) -> String? {
        let known = known(settings, inherited)
        let hosts = known.map(\.ip)
        for name in variables {
            guard let value = StartEnvironment.variables[name], let url = URLComponents(string: value),
                let user = url.percentEncodedUser, let password = url.percentEncodedPassword, let host = url.host,
                hosts.contains(host.filter { $0 != "[" && $0 != "]" })
                    || ["127.0.0.1", "localhost", "[::1]", "::1"].contains(host),
                known.contains(where: { Int($0.port) == url.port })
            else { continue }
            return "\(user):\(password)"
        }
        return nil
    }

    var description: String { "\(scheme)://\(credentials.map { $0 + "@" } ?? "")\(address)" }

    /// The URL with placeholders for user name and password.
    var withCredentials: String { "\(scheme)://NAME:PASSWORD@\(address)" }

    /// `127.0.0.1:7467`
    var address: String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }

    var isReachable: Bool {
        guard let ip = IPAddress(host), let socket = try? Socket.beginConnect(to: SocketAddress(ip: ip, port: port))
        else {
            return false
        }
        var wanted = pollfd(fd: socket.raw, events: Int16(POLLOUT), revents: 0)
        return poll(&wanted, 1, 1000) == 1 && Socket.pendingError(socket.raw) == 0
    }
}
