import Foundation

/// A proxy in its own network namespace, and past its only uplink an origin in another. The namespaces end with their
/// programs, so nothing needs cleaning up.
///
///     proxy: up0 192.0.2.7 ── far0 192.0.2.1, 192.0.2.254 :origin, which is 203.0.113.10 and 203.0.113.11 too
struct NetworkBed: Sendable {
    static let name = "remote.test"
    static let otherName = "other.test"

    /// Whether this process may make namespaces.
    static let isAvailable = Probe.succeeds(["unshare", "--net", "--mount", "ip", "link", "show", "lo"])

    let bed: TestBed
    let proxy: ProxyProcess
    let roots: TestRoots
    let origin: PythonPeer

    /// Starts both, with no link between them.
    /// - Parameter marks: what sysfs says of links: names with their DEVTYPE.
    init(
        in bed: TestBed, pins: String = "hosts: []\n", sections: ProxyProcess.Sections = [:],
        marks: [String: String] = [:]
    ) async throws {
        self.bed = bed
        roots = try TestRoots()
        origin = try await PythonPeer.origin(
            in: bed, chain: roots.chain(Self.name, Self.otherName), ["--listen", "0.0.0.0"],
            launcher: ["unshare", "--net"] + Self.script([]))
        let sysfs =
            ["mount -t tmpfs none /sys/class/net"]
            + marks.sorted { $0.key < $1.key }.flatMap { link, type in
                ["mkdir /sys/class/net/\(link)", "echo DEVTYPE=\(type) > /sys/class/net/\(link)/uevent"]
            }
        proxy = try await ProxyProcess(
            in: bed, pins: pins, trust: roots.write(to: bed),
            hosts: [Self.name: "203.0.113.10", Self.otherName: "203.0.113.11", "here.test": "127.0.0.1"],
            sections: sections, launcher: ["unshare", "--net", "--mount"] + Self.script(marks.isEmpty ? [] : sysfs))
    }

    /// Has a shell set the network up before it becomes what follows.
    private static func script(_ commands: [String]) -> [String] {
        ["/bin/sh", "-c", (["ip link set lo up"] + commands + ["exec \"$@\""]).joined(separator: " && "), "sh"]
    }

    /// What runs a program in the namespace of another.
    private static func within(_ process: ChildProcess) -> [String] {
        ["nsenter", "--net=/proc/\(process.identifier)/ns/net"]
    }

    /// What runs a program beside the proxy.
    var besideProxy: [String] { Self.within(proxy.process) }

    /// Runs `ip` beside the proxy, once for all commands.
    func ip(_ commands: String...) async throws { try await ip(commands, beside: proxy.process) }

    private func ip(_ commands: [String], beside process: ChildProcess) async throws {
        let run = try await bed.run(
            Self.within(process) + ["ip", "-batch", "-"], input: Array((commands.joined(separator: "\n") + "\n").utf8))
        guard run.succeeded else { throw TestBedError("\(run)") }
    }

    /// Lays a link to the origin: with number 0 the one drawn above, with 1 the same in 198.51.100.0/24. The proxy's
    /// end has its address, and no route but to that network.
    func addUplink(_ number: Int = 0) async throws {
        let network = number == 0 ? "192.0.2" : "198.51.100"
        try await ip("link add up\(number) type veth peer name far\(number) netns \(origin.process.identifier)")
        try await ip(
            [
                "address add \(network).1/24 dev far\(number)", "address add \(network).254/24 dev far\(number)",
                "address replace 203.0.113.10/32 dev lo", "address replace 203.0.113.11/32 dev lo",
                "link set far\(number) up",
            ], beside: origin.process)
        try await ip("address add \(network).7/24 dev up\(number)", "link set up\(number) up")
    }

    /// Takes the carrier of a link down, or up again.
    func setCarrier(of number: Int = 0, _ isThere: Bool) async throws {
        try await ip(["link set far\(number) \(isThere ? "up" : "down")"], beside: origin.process)
    }

    /// curl beside the proxy and through it. What it prints ends with the status of the answer, the proxy's to CONNECT
    /// included.
    func curl(_ arguments: String...) async throws -> Run {
        try await bed.run(
            besideProxy + ["curl", "-sS", "-D", "-", "-o", "/dev/null", "-w", "%{http_connect} %{http_code}"]
                + arguments,
            environment: proxy.clientEnvironment)
    }

    func url(_ path: String = "/echo", of name: String = name) -> String { "https://\(name):\(origin.port)\(path)" }

    /// The proxy's `number`th report about the network, from 1.
    func change(_ number: Int) async throws -> LogEvent {
        try await proxy.events.first("reachability.change", number: number)
    }
}
