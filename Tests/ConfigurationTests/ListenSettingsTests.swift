import Testing

@testable import PinproxyConfiguration

/// `proxy.listen` besides plain addresses: Unix sockets, and addresses that expect PROXY headers.
@Suite struct ListenSettingsTests {
    private static func bed(_ text: String) throws -> ConfigurationBed {
        try ConfigurationBed(
            pins: "hosts: []\n", ["pinproxy.yaml": "upstream: {trust: ca.pem}\n\(text)pins: pins/hosts.yaml\n"])
    }

    private func load(_ proxy: String) throws -> (ProxySettings, bed: ConfigurationBed, warnings: [String]) {
        let bed = try Self.bed("proxy: {\(proxy)}\n")
        let snapshot = try bed.load()
        return (snapshot.proxy, bed, snapshot.warnings.map(\.message))
    }

    @Test func readsEveryKind() throws {
        let (proxy, bed, warnings) = try load(
            "listen: [127.0.0.1:7467, unix:run/p.sock, unix:/run/q.sock, systemd, "
                + "{address: 192.0.2.1:80, proxy_protocol: [192.0.2.10, 10.0.0.0/8]}], socket_mode: \"0660\", "
                + "socket_group: 0"
        )
        #expect(proxy.listen.addresses.map(\.description) == ["127.0.0.1:7467", "192.0.2.1:80"])
        #expect(proxy.listen.directAddresses.map(\.description) == ["127.0.0.1:7467"])
        #expect(proxy.listen.paths == [bed.path("run/p.sock"), "/run/q.sock"])
        #expect(proxy.listen.takesInherited)
        #expect(proxy.listen.proxyProtocol.map { "\($0): \($1)" } == ["192.0.2.1:80: [192.0.2.10, 10.0.0.0/8]"])
        #expect(proxy.socket == SocketAccess(mode: 0o660, group: 0))
        #expect(warnings.isEmpty, "\(warnings)")
        #expect(try load("listen: unix:p.sock").0.listen.addresses.isEmpty)
        #expect(
            try load("listen: {address: 192.0.2.1:80, proxy_protocol: 192.0.2.10}").0.listen.proxyProtocol.count == 1)
        #expect(
            try load("listen: {address: 192.0.2.1:80, proxy_protocol: [0.0.0.0/0]}").warnings.contains {
                $0.contains("claim to be any client")
            })
    }

    @Test(arguments: [
        ("listen: [unix:a.sock, unix:a.sock]", "is written twice"), ("listen: \"unix:\"", "names no socket"),
        ("listen: unix:/run/", "names no socket"), ("listen: unix:a, socket_mode: \"rw\"", "\"rw\" is not a file mode"),
        ("listen: {address: 192.0.2.1:80}", "\"proxy_protocol\" is missing: list the trusted senders of PROXY headers"),
        ("listen: {proxy_protocol: [192.0.2.1]}", "\"address\" is missing; write e.g. {address: "),
        ("listen: {address: 192.0.2.1:80, proxy_protocol: []}", "the list is empty, so nobody could connect"),
        ("listen: {address: 192.0.2.1:80, proxy_protocol: [balancer]}", "\"balancer\" is not an IP address or range"),
        ("listen: {address: unix:a.sock, proxy_protocol: [192.0.2.1]}", "takes no PROXY headers"),
        ("listen: {address: systemd, proxy_protocol: [192.0.2.1]}", "takes no PROXY headers"),
        (
            "listen: {address: 192.0.2.1:0, proxy_protocol: [192.0.2.1]}",
            "write a port, which the load balancer has to know"
        ),
        ("listen: {address: 192.0.2.1:80, proxy_protocl: [192.0.2.1]}", "did you mean \"proxy_protocol\"?"),
        (
            "listen: [192.0.2.1:80, {address: 192.0.2.1:80, proxy_protocol: [192.0.2.1]}]",
            "192.0.2.1:80 is written twice"
        ),
    ]) func explainsProblems(_ proxy: String, _ expected: String) throws {
        do {
            _ = try load(proxy)
            Issue.record("nothing is wrong with \(proxy)")
        } catch let problems as ConfigurationProblems {
            #expect(problems.description.contains(expected), "\(problems)")
        }
    }

    @Test func theAdminPortIsElsewhere() throws {
        #expect(throws: ConfigurationProblems.self) {
            try Self.bed("proxy: {listen: unix:a.sock}\nadmin: {listen: unix:a.sock}\n").load()
        }
    }
}
