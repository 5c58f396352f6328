import Glibc
import PinproxySecurity
import PinproxySession
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxyConfiguration

/// pinproxy.yaml, valid and invalid. Users see the messages, so they are compared word for word.
@Suite struct DaemonFileTests {
    private func bed(_ text: String, _ more: [String: String]) throws -> ConfigurationBed {
        var files = ["pins.yaml": "hosts: []\n", "ca.pem": try Self.authority.get()]
        files.merge(more) { $1 }
        // Reading one authority is faster than reading all of the system's.
        let isMapping = text.contains(": ") && !text.contains("upstream") && text.hasSuffix("\n")
        files["pinproxy.yaml"] = isMapping ? text + "upstream: {trust: ca.pem}\n" : text
        return try ConfigurationBed(files)
    }

    private static let authority = Result { try HeldCertificate.root().pem }

    private func problems(_ text: String, _ more: [String: String] = [:]) throws -> [String] {
        try bed(text, more).problems()
    }

    private func load(_ text: String, _ more: [String: String] = [:]) throws -> Snapshot {
        try bed(text, more).load()
    }

    @Test func hasTheDefaultsOfTheContract() throws {
        let snapshot = try load("proxy:\n")
        #expect(snapshot.proxy.listen.addresses.map(\.description) == ["127.0.0.1:7467"])
        #expect(snapshot.proxy.allowClients.map(\.description) == ["127.0.0.0/8", "::1"])
        #expect(snapshot.proxy.workers == nil)
        #expect(snapshot.proxy.users == nil)
        #expect(snapshot.proxy.tls == nil)
        #expect(snapshot.proxy.via)
        #expect(snapshot.authority.certificatePath == snapshot.stateDirectory + "/authority.pem")
        #expect(snapshot.authority.privateKeyPath == snapshot.stateDirectory + "/authority.key")
        #expect(snapshot.authority.leafLifetime == .seconds(30 * 86_400))
        #expect(snapshot.upstream.parent == nil)
        #expect(snapshot.upstream.addresses.blocked == [.kind(.linkLocal), .kind(.metadata)])
        #expect(snapshot.upstream.addresses.allowed.isEmpty)
        #expect(!snapshot.upstream.anchors.certificates.isEmpty)
        #expect(snapshot.timeouts == .init())
        #expect(snapshot.limits == .init())
        #expect(snapshot.log == .init())
        #expect(snapshot.defaultAction == .intercept)
        #expect(snapshot.warnings == [])
    }

    @Test func theDefaultsOfWhatIsNotSupportedYetMayBeWritten() throws {
        #expect(try load("reachability: [a.test, any]\n").reachability == [.host("a.test"), .any])
        let snapshot = try load(
            "reachability: [any]\nlimits: {inspected_body: 8MiB, replay_body: 1024KiB, bodies: 256MiB}\nadmin: null\n")
        #expect(snapshot.reachability == [.any])
        #expect(snapshot.limits == .init())
        #expect(snapshot.warnings == [])
        #expect(try load("limits: {minimum_rate: 1024B/300s}\n").limits == .init())
        #expect(try load("limits: {minimum_rate: off}\n").limits.minimumRate == nil)
    }

    @Test(
        arguments: [
            ("any", .any), ("2001:DB8::1", .address("2001:db8::1")), ("192.0.2.1", .address("192.0.2.1")),
            ("API.Example.com.", .host("api.example.com")),
        ] as [(String, ReachabilityTarget)])
    func readsWhatIsWatched(_ text: String, _ expected: ReachabilityTarget) throws {
        #expect(try ReachabilityTarget.parse(text).get() == expected)
    }

    @Test func readsEverySetting() throws {
        let snapshot = try load(
            """
            proxy:
              listen: [192.0.2.1:80, "[2001:DB8::1]:0"]
              workers: 3
              users: users
              allow_clients: [10.0.0.0/8, ::/0]
              via: false
            authority: {certificate: ca.pem, private_key: /keys/ca.key, signer: "unix:/run/s.sock", leaf_lifetime: \
            1d12h, name_constraints: [Example.test, bücher.test, 10.0.0.0/8, "::1"]}
            upstream:
              parent: http://us%65r:p%40ss@Proxy.example:3128/
              block_addresses: [loopback, private, 203.0.113.0/24, "::ffff:198.51.100.0/120"]
              allow_addresses: [127.0.0.1, cgnat]
            timeouts: {connect: 500ms, tls_handshake: 2s, idle_client: 1h, idle_upstream: 1m30s, first_byte: 3m, \
            drain: 0s, drain_tunnels: 7s, handover: 5m}
            limits: {request_head: 8KiB, response_head: 1MiB, clients: 12, minimum_rate: 100B/1m30s, bodies: 1GiB}
            log: {level: debug, format: json, access: false}
            pins: null
            """, ["users": "# comment\nann:$2y$05$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234\n\n"])
        #expect(snapshot.proxy.listen.addresses.map(\.description) == ["192.0.2.1:80", "[2001:db8::1]:0"])
        #expect(snapshot.proxy.workers == 3)
        #expect(snapshot.proxy.users?.lines == ["ann:$2y$05$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234"])
        #expect(snapshot.proxy.allowClients.map(\.description) == ["10.0.0.0/8", "::/0"])
        #expect(!snapshot.proxy.via)
        #expect(snapshot.authority.certificatePath == snapshot.stateDirectory + "/ca.pem")
        #expect(snapshot.authority.privateKeyPath == "/keys/ca.key")
        #expect(snapshot.authority.signer == "/run/s.sock")
        #expect(snapshot.authority.leafLifetime == .seconds(129_600))
        #expect(
            snapshot.authority.permitted?.items.map(\.description) == [
                "example.test", "xn--bcher-kva.test", "10.0.0.0/8", "::1/128",
            ])
        #expect(
            snapshot.upstream.parent == .init(host: "proxy.example", port: 3128, authorization: "Basic dXNlcjpwQHNz"))
        #expect(
            snapshot.upstream.addresses.blocked.map(\.description) == [
                "loopback", "private", "203.0.113.0/24", "198.51.100.0/24",
            ])
        #expect(snapshot.upstream.addresses.allowed.map(\.description) == ["127.0.0.1", "cgnat"])
        #expect(snapshot.timeouts.connect == .milliseconds(500))
        #expect(snapshot.timeouts.idleUpstream == .seconds(90))
        #expect(snapshot.timeouts.drain == .zero)
        #expect(snapshot.timeouts.drainTunnels == .seconds(7))
        #expect(snapshot.timeouts.handover == .seconds(300))
        #expect(snapshot.limits.requestHead == 8192)
        #expect(snapshot.limits.responseHead == 1 << 20)
        #expect(snapshot.limits.clients == 12)
        #expect(snapshot.limits.minimumRate == MinimumRate(bytes: 100, within: .seconds(90)))
        #expect(snapshot.limits.bodies == 1 << 30)
        #expect(snapshot.log.level == .debug)
        #expect(snapshot.log.format == .json)
        #expect(!snapshot.log.access)
        #expect(snapshot.files.count == 1)
        #expect(
            snapshot.warnings.map(\.message).count { $0.hasPrefix("parent: a host whose name") }
                == snapshot.warnings.count)
    }

    @Test(arguments: [
        ("prox:\n  listen: x\n", "1:1: error: unknown key \"prox\"; did you mean \"proxy\"?"),
        ("proxy: {lisen: x}\n", "1:9: error: unknown key \"lisen\" in \"proxy\"; did you mean \"listen\"?"),
        (
            "timeouts: {speed: 1s}\n",
            """
            1:12: error: unknown key \"speed\" in \"timeouts\"; known here: connect, tls_handshake, idle_client, \
            idle_upstream, first_byte, drain, drain_tunnels, handover
            """
        ),
        (
            "timeouts: {idle-client: 1s}\n",
            "1:12: error: unknown key \"idle-client\" in \"timeouts\"; did you mean \"idle_client\"?"
        ),
        ("proxy: [1]\n", "1:8: error: \"proxy\" must be a mapping (key: value), not a list"),
        ("- proxy\n", "1:1: error: the file must be a mapping (key: value), not a list"),
        ("hello\n", "1:1: error: the file must be a mapping (key: value), not \"hello\""),
        ("https://a.test\n", "1:1: error: the file must be a mapping (key: value), not \"https://a.test\""),
        (
            "pins:null\n",
            """
            1:1: error: the file must be a mapping (key: value), not "pins:null"; there is no space after the colon: \
            write pins: …
            """
        ),
        (
            "proxy:\n  listen:127.0.0.1\n",
            """
            2:3: error: "proxy" must be a mapping (key: value), not "listen:127.0.0.1"; there is no space after the \
            colon: write listen: …
            """
        ),
        (
            "proxy: {listen:127.0.0.1:0}\n",
            """
            1:9: error: unknown key "listen:127.0.0.1:0" in "proxy"; there is no space after the colon: write listen: …
            """
        ),
        (
            "proxy:\n  listen:\n    -127.0.0.1:0\n    -127.0.0.1:1\n",
            "3:5: error: listen: there is no space after the dash that begins an element"
        ),
        (
            "upstream:\n  trust:\n    -system\n",
            "3:5: error: trust: there is no space after the dash that begins an element"
        ),
        ("proxy:\n  workers: many\n", "2:12: error: workers: \"many\" is not a whole number, or auto for one a core"),
        (
            "proxy:\n  workers: 0\n",
            "2:12: error: workers: 0 is out of range; write a number from 1 to 1024, or auto for one a core"
        ),
        ("proxy: {workers: [2]}\n", "1:18: error: \"workers\" takes a single value, not a list"),
        ("proxy:\n  workers:\n", "2:11: error: \"workers\" has no value; write one, or leave the line out"),
        ("proxy: {via: yes}\n", "1:14: error: via: \"yes\" is neither true nor false"),
        ("proxy: {listen: 7467}\n", "1:17: error: listen: \"7467\" has no address; write e.g. 127.0.0.1:7467"),
        (
            "proxy: {listen: 127.0.0.1}\n",
            """
            1:17: error: listen: \"127.0.0.1\" has no port; write an address and a port, e.g. 127.0.0.1:7467 or \
            \"[::1]:7467\"
            """
        ),
        (
            "proxy: {listen: \"localhost:1\"}\n",
            "1:17: error: listen: \"localhost\" is a name; write 127.0.0.1:1 or \"[::1]:1\", or both as a list"
        ),
        (
            "proxy: {listen: \"*:1\"}\n",
            "1:17: error: listen: \"*:1\" has no address; write 0.0.0.0:1 or \"[::]:1\" if every machine may connect"
        ),
        (
            "proxy: {listen: 1.2.3:80}\n",
            """
            1:17: error: listen: \"1.2.3\" is not an IP address; write an address and a port, e.g. 127.0.0.1:7467 or \
            \"[::1]:7467\"
            """
        ),
        ("proxy: {listen: 1.2.3.4:x}\n", "1:17: error: listen: \"x\" is not a port; write a number from 0 to 65535"),
        (
            "proxy: {listen: 1.2.3.4:70000}\n",
            "1:17: error: listen: \"70000\" is not a port; write a number from 0 to 65535"
        ),
        (
            "proxy: {listen: ::1:80}\n",
            """
            1:17: error: listen: an IPv6 address is written in brackets, and in quotes because of them; write an \
            address and a port, e.g. 127.0.0.1:7467 or \"[::1]:7467\"
            """
        ),
        (
            "proxy: {listen: \"[1.2.3.4]:80\"}\n",
            "1:17: error: listen: only IPv6 addresses are written in brackets; write 1.2.3.4:80"
        ),
        ("proxy: {listen: []}\n", "1:17: error: listen: the list is empty; write an address, or systemd"),
        (
            "proxy: {listen: [systemd, host:80]}\n",
            """
            1:27: error: listen: \"host\" is not an IP address; write an address and a port, e.g. 127.0.0.1:7467 or \
            \"[::1]:7467\"
            """
        ),
        ("proxy: {listen: [1.2.3.4:80, 1.2.3.4:80]}\n", "1:30: error: listen: 1.2.3.4:80 is written twice"),
        (
            "proxy: {http: []}\n",
            "1:15: error: http: the list is empty, so clients would be offered nothing; write h2, http/1.1, or both"
        ),
        ("proxy: {http: [h2, http/1.1, h2]}\n", "1:30: error: http: h2 is written twice"),
        ("proxy: {http: h2c}\n", "1:15: error: http: h2c, HTTP/2 in the clear, is not spoken; write h2 or http/1.1"),
        ("proxy: {http: [http/2]}\n", "1:16: error: http: unknown value \"http/2\"; write h2 or http/1.1"),
        ("proxy: {http: {}}\n", "1:15: error: \"http\" takes a value or a list of them, not a mapping"),
        (
            "proxy: {http: [h2]}\n",
            """
            1:15: warning: http: programs that support only HTTP/1.1 are refused inside CONNECT; add http/1.1 unless \
            this is intended
            """
        ),
        ("proxy: {htpp: [h2]}\n", "1:9: error: unknown key \"htpp\" in \"proxy\"; did you mean \"http\"?"),
        (
            "proxy: {allow_clients: [10.0.0.0/33]}\n",
            "1:25: error: allow_clients: \"10.0.0.0/33\": the text after the slash must be a number from 0 to 32"
        ),
        (
            "proxy: {allow_clients: [10.1.0.0/8]}\n",
            "1:25: error: allow_clients: \"10.1.0.0/8\" has bits set beyond its first 8"
        ),
        (
            "proxy: {allow_clients: [lan]}\n",
            """
            1:25: error: allow_clients: \"lan\" is not an IP address or range; write e.g. 127.0.0.0/8, 192.0.2.7 or ::1
            """
        ),
        ("proxy: {allow_clients: []}\n", "1:24: error: allow_clients: the list is empty, so nobody could connect"),
        (
            "proxy: {allow_clients: {a: b}}\n",
            "1:24: error: \"allow_clients\" takes a value or a list of them, not a mapping"
        ),
        ("timeouts: {connect: 10}\n", "1:21: error: connect: \"10\" has no unit; write 10s if seconds are meant"),
        (
            "timeouts: {connect: 10 s}\n",
            "1:21: error: connect: \"10 s\" has no unit; write a number and a unit (ms, s, m, h, d), e.g. 10s or 1h30m"
        ),
        (
            "timeouts: {connect: 10sec}\n",
            """
            1:21: error: connect: \"sec\" is not a unit of time; write a number and a unit (ms, s, m, h, d), e.g. 10s \
            or 1h30m
            """
        ),
        (
            "timeouts: {connect: fast}\n",
            """
            1:21: error: connect: \"fast\" is not a time; write a number and a unit (ms, s, m, h, d), e.g. 10s or 1h30m
            """
        ),
        (
            "timeouts: {connect: -1s}\n",
            "1:21: error: connect: \"-1s\" is not a time; write a number and a unit (ms, s, m, h, d), e.g. 10s or 1h30m"
        ),
        ("timeouts: {connect: 0s}\n", "1:21: error: connect: 0s is out of range; write a time from 1ms to 1h"),
        ("timeouts: {idle_client: 2d}\n", "1:25: error: idle_client: 2d is out of range; write a time from 1ms to 1d"),
        (
            "timeouts: {connect: 99999999999999999999s}\n",
            "1:21: error: connect: \"99999999999999999999s\" is too long a time"
        ),
        (
            "authority: {signer: 127.0.0.1:80}\n",
            "1:21: error: signer: \"127.0.0.1:80\" is not a Unix socket; write e.g. unix:/run/pinproxy-signer.sock"
        ),
        (
            "authority: {signer: 'unix:'}\n",
            "1:21: error: signer: \"unix:\" is not a Unix socket; write e.g. unix:/run/pinproxy-signer.sock"
        ),
        (
            "authority: {leaf_lifetime: 398d}\n",
            "1:28: error: leaf_lifetime: 398d is out of range; write a time from 1h to 89d"
        ),
        (
            "authority: {name_constraints: []}\n",
            "1:31: error: name_constraints: the list is empty; null permits every host"
        ),
        (
            "authority: {name_constraints: ['*.a.test']}\n",
            """
            1:32: error: name_constraints: \"*.a.test\" has a wildcard; a domain includes all names below it
            """
        ),
        (
            "authority: {name_constraints: [a b]}\n",
            "1:32: error: name_constraints: \"a b\" is neither a domain nor a network"
        ),
        ("authority: {private_key: ~/x}\n", "1:26: error: private_key: \"~\" is not expanded; write the whole path"),
        ("limits: {request_head: 64KB}\n", "1:24: error: request_head: \"KB\" is not a unit of size; write 64KiB"),
        (
            "limits: {request_head: big}\n",
            "1:24: error: request_head: \"big\" is not a size; write a number and a unit (B, KiB, MiB, GiB), e.g. 64KiB"
        ),
        (
            "limits: {request_head: 100}\n",
            "1:24: error: request_head: 100 is out of range; write a size from 1KiB to 16MiB"
        ),
        ("limits: {request_head: 9999999999GiB}\n", "1:24: error: request_head: \"9999999999GiB\" is too big"),
        ("limits: {clients: 1e4}\n", "1:19: error: clients: \"1e4\" is not a whole number"),
        (
            "log: {level: warn}\n",
            "1:14: error: level: unknown value \"warn\"; write trace, debug, info, notice, warning, error or critical"
        ),
        ("log: {level: eror}\n", "1:14: error: level: unknown value \"eror\"; did you mean \"error\"?"),
        ("limits: {inspected_body: 8Mb}\n", "1:26: error: inspected_body: \"Mb\" is not a unit of size; write 8MiB"),
        (
            "limits: {minimum_rate: 1KiB}\n",
            "1:24: error: minimum_rate: \"1KiB\" is not a rate; write a size and a time, e.g. 1KiB/5m, or off"
        ),
        (
            "limits: {minimum_rate: 1KiB/}\n",
            """
            1:24: error: minimum_rate: \"\" is not a time; write a number and a unit (ms, s, m, h, d), e.g. 10s or \
            1h30m
            """
        ),
        (
            "limits: {minimum_rate: 0B/1m}\n",
            "1:24: error: minimum_rate: 0B is out of range; write a size from 1B to 1GiB"
        ),
        (
            "limits: {minimum_rate: 1KiB/5}\n",
            "1:24: error: minimum_rate: \"5\" has no unit; write 5s if seconds are meant"
        ),
        (
            "limits: {minimum_rate: 1KiB/2d}\n",
            "1:24: error: minimum_rate: 2d is out of range; write a time from 1ms to 1d"
        ),
        (
            "limits: {minimum_rate: null}\n",
            "1:24: error: \"minimum_rate\" has no value; write one, or leave the line out"
        ),
        (
            "limits: {replay_body: 2GiB}\n",
            "1:23: error: replay_body: 2GiB is out of range; write a size from 0B to 1GiB"
        ),
        ("limits: {bodies: 0}\n", "1:18: error: bodies: 0 is out of range; write a size from 64KiB to 1024GiB"),
        (
            "limits: {bodies: -1MiB}\n",
            "1:18: error: bodies: \"-1MiB\" is not a size; write a number and a unit (B, KiB, MiB, GiB), e.g. 64KiB"
        ),
        ("limits: {bodies: 256Mb}\n", "1:18: error: bodies: \"Mb\" is not a unit of size; write 256MiB"),
        ("limits: {bodies: [1MiB]}\n", "1:18: error: \"bodies\" takes a single value, not a list"),
        ("limits: {bodies: null}\n", "1:18: error: \"bodies\" has no value; write one, or leave the line out"),
        (
            "limits: {bodies: 4MiB}\n",
            "1:18: warning: bodies (4MiB) is less than inspected_body (8MiB): a body of that length is always refused"
        ),
        (
            "limits: {inspected_body: 512MiB}\n",
            """
            1:26: warning: bodies (256MiB) is less than inspected_body (512MiB): a body of that length is always \
            refused
            """
        ),
        (
            "reachability: [any, \"a.test:80\"]\n",
            "1:21: error: reachability: \"a.test:80\": a port can't be watched; leave it out"
        ),
        (
            "reachability: [any, eth0]\n",
            "1:21: error: reachability: \"eth0\" is a network interface, and what is watched is a way to somewhere; "
                + "write any, an address or a host name (a host of that name with its domain)"
        ),
        (
            "reachability: [lo]\n",
            "1:16: error: reachability: \"lo\" is a network interface, and what is watched is a way to somewhere; "
                + "write any, an address or a host name (a host of that name with its domain)"
        ),
        ("reachability: []\n", "1:15: error: reachability: the list is empty; write any, addresses or host names"),
        ("admin: {listen: 7468}\n", "1:17: error: listen: \"7468\" has no address; write e.g. 127.0.0.1:7468"),
        (
            "admin: {port: 7468}\n",
            """
            1:9: error: unknown key \"port\" in \"admin\"; known here: listen, tls, token_file, hosts, socket_mode, \
            socket_group
            """
        ),
        (
            "upstream: {parent: https://p:1}\n",
            """
            1:20: error: parent: TLS to the parent proxy is not understood; write http://HOST:PORT or \
            http://USER:PASSWORD@HOST:PORT
            """
        ),
        (
            "upstream: {parent: p:1}\n",
            "1:20: error: parent: it is not an http:// URL; write http://HOST:PORT or http://USER:PASSWORD@HOST:PORT"
        ),
        (
            "upstream: {parent: http://p}\n",
            "1:20: error: parent: the port is missing; write http://HOST:PORT or http://USER:PASSWORD@HOST:PORT"
        ),
        (
            "upstream: {parent: http://p:0}\n",
            """
            1:20: error: parent: the text after the last colon is not a port; write http://HOST:PORT or \
            http://USER:PASSWORD@HOST:PORT
            """
        ),
        ("upstream: {parent: \"http://[x]:1\"}\n", "1:20: error: parent: \"x\" is not an IPv6 address"),
        (
            "upstream: {parent: http://a b:1}\n",
            """
            1:20: error: parent: the part before the port is not a host name; write http://HOST:PORT or \
            http://USER:PASSWORD@HOST:PORT
            """
        ),
        (
            "upstream: {parent: http://u%0a:x@p:1}\n",
            "1:20: error: parent: the credentials are not USER:PASSWORD (with %XX for special characters)"
        ),
        (
            "upstream: {block_addresses: [linklocal]}\n",
            "1:30: error: block_addresses: unknown value \"linklocal\"; did you mean \"link-local\"?"
        ),
        (
            "upstream: {block_addresses: [everything]}\n",
            """
            1:30: error: block_addresses: unknown value \"everything\"; write loopback, link-local, private, cgnat, \
            multicast, metadata, or an address or range
            """
        ),
        (
            "upstream: {block_addresses: [10.1.2.3/8]}\n",
            "1:30: error: block_addresses: \"10.1.2.3/8\" has bits set beyond its first 8"
        ),
        (
            "upstream: {allow_addresses: [localhost.]}\n",
            """
            1:30: error: allow_addresses: \"localhost.\" is not an IP address or range; write e.g. 127.0.0.0/8, \
            192.0.2.7 or ::1
            """
        ),
        (
            "upstream: {allow_addresses: [metadata]}\n",
            """
            1:30: warning: insecure: clients reach the cloud's metadata service, and its credentials, through the proxy
            """
        ),
        (
            "upstream: {allow_addresses: [169.254.0.0/16]}\n",
            """
            1:30: warning: insecure: clients reach the cloud's metadata service, and its credentials, through the proxy
            """
        ),
        (
            "upstream: {block_addresses: [private], allow_addresses: [private]}\n",
            "1:58: warning: allow_addresses: private is in block_addresses too; the exception wins"
        ),
        (
            "upstream: {parent: http://127.0.0.1:7467}\n",
            "1:20: error: parent: 127.0.0.1:7467 is this proxy itself, which listens on 127.0.0.1:7467 (proxy.listen)"
        ),
        (
            "upstream: {parent: http://app.localhost:7467}\n",
            """
            1:20: error: parent: app.localhost:7467 is this proxy itself, which listens on 127.0.0.1:7467 \
            (proxy.listen)
            """
        ),
        (
            "proxy: {listen: 0.0.0.0:80}\nupstream: {parent: \"http://[::ffff:127.0.0.1]:80\"}\n",
            "2:20: error: parent: ::ffff:127.0.0.1:80 is this proxy itself, which listens on 0.0.0.0:80 (proxy.listen)"
        ),
        (
            "upstream: {parent: http://0.0.0.0:7467}\n",
            "1:20: error: parent: 0.0.0.0:7467 is this proxy itself, which listens on 127.0.0.1:7467 (proxy.listen)"
        ),
        (
            "upstream: {parent: http://p.example:7467}\n",
            """
            1:20: warning: parent: a host whose name can't be looked up here is left to the parent, which may connect \
            to an address that block_addresses names
            """
        ),
        (
            "upstream: {block_addresses: []}\n",
            """
            1:29: warning: insecure: no address is blocked; clients reach the cloud's metadata service through the \
            proxy
            """
        ),
        (
            "upstream: {trust: []}\n",
            "1:19: error: trust: the list is empty, so no server could be trusted; write system"
        ),
        ("upstream: {trust: [system, none.pem]}\n", "1:28: error: trust: none.pem: No such file or directory"),
        ("upstream: {trust: pins.yaml}\n", "1:19: error: trust: pins.yaml: it contains no certificate"),
        (
            "pins: other.yaml\n",
            """
            1:7: error: pins: other.yaml can't be read: No such file or directory (write pins: null if nothing is to \
            be pinned)
            """
        ),
        (
            "proxy: {listen: 0.0.0.0:80, allow_clients: [0.0.0.0/0]}\n",
            "1:44: warning: everybody who can reach the port may use this proxy; name the networks, or set users"
        ),
        ("", "1:1: warning: the file is empty; every setting has its default"),
        ("proxy: {tls: {certificate: a.pem}}\n", "1:14: error: tls: \"private_key\" is missing"),
        ("proxy: {users: none}\n", "1:16: error: users: none: No such file or directory"),
    ]) func explainsProblems(_ text: String, _ problem: String) throws {
        let problems = try problems(text).filter { !$0.contains("certificate: a.pem:") }
        #expect(problems == ["pinproxy.yaml:" + problem])
    }

    @Test func reportsEverythingAtOnceInOrder() throws {
        let problems = try problems(
            """
            limits: {clients: none}
            proxy:
              listen: nowhere
              worker: 2
            pins: pins.yaml
            bogus: 1

            """, ["pins.yaml": "hosts:\n  - match: a b\n"])
        #expect(
            problems == [
                "pinproxy.yaml:1:19: error: clients: \"none\" is not a whole number",
                """
                pinproxy.yaml:3:11: error: listen: \"nowhere\" has no port; write an address and a port, e.g. \
                127.0.0.1:7467 or \"[::1]:7467\"
                """,
                "pinproxy.yaml:4:3: error: unknown key \"worker\" in \"proxy\"; did you mean \"workers\"?",
                """
                pinproxy.yaml:6:1: error: unknown key \"bogus\"; known here: proxy, authority, upstream, timeouts, \
                limits, cache, log, reachability, admin, pins, policy, telemetry
                """,
                "pins.yaml:2:12: error: match: “a b” contains a character that host names can't have",
            ])
    }

    @Test func boundsTheNumberOfProblems() throws {
        let keys = (0..<20_000).map { "unknown\($0): 1\n" }.joined()
        let problems = try problems(keys)
        #expect(problems.count == 201)
        #expect(problems.last == "pinproxy.yaml: error: 19800 more problems are not shown")
    }

    @Test func saysWhichUserIsWrong() throws {
        let hash = "$2b$12$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234"
        let users = "ann:\(hash)\nbob:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\nann:\(hash)\ncarl\n:\(hash)\n"
        #expect(
            try problems("proxy: {users: users}", ["users": users]) == [
                "users:2:1: error: the password of \"bob\" is not a bcrypt hash; make the line with: htpasswd -nB bob",
                "users:3:1: error: user \"ann\" is already in line 1",
                "users:4:1: error: expected NAME:HASH; make the line with: htpasswd -nB NAME",
                "users:5:1: error: expected NAME:HASH; make the line with: htpasswd -nB NAME",
            ])
        #expect(
            try problems("proxy: {users: users}", ["users": "# nobody\n"]) == [
                "pinproxy.yaml:1:16: warning: users: users has no users, so nobody can use the proxy"
            ])
    }

    @Test func acceptsTheDefaultsOfWhatIsNotBuilt() throws {
        #expect(try problems("admin: {}\nlimits: {inspected_body: 8MiB}\n") == [])
        #expect(try problems("admin: null\nproxy: {tls: null, users: null}\nupstream: {parent: null}\n") == [])
    }

    @Test func saysThatTheFileIsMissing() throws {
        #expect(
            try ConfigurationBed().problems() == ["pinproxy.yaml: error: can't be read: No such file or directory"])
        // It has no writer; a reload that waited for it would hang the proxy.
        let bed = try ConfigurationBed()
        #expect(mkfifo(bed.path("pinproxy.yaml"), 0o600) == 0)
        #expect(bed.problems() == ["pinproxy.yaml: error: can't be read: not a regular file"])
    }

    /// Every truncated file gives a snapshot or an error.
    @Test func survivesEveryPrefix() throws {
        let text =
            """
            upstream: {trust: ca.pem}\nproxy: {listen: [127.0.0.1:0], allow_clients: [::1]}\nlog:\n  level: \
            info\npins: null\n
            """
        let bytes = Array(text.utf8)
        let bed = try bed("", [:])
        for length in 0...bytes.count {
            try bed.write("pinproxy.yaml", Array(bytes[..<length]))
            do { _ = try bed.load() } catch { #expect(error.problems.contains { $0.severity == .error }) }
        }
    }
}
