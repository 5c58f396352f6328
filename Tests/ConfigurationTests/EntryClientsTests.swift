import Testing

@testable import PinproxyConfiguration

@Suite struct EntryClientsTests {
    private typealias Process = EntryClients.Process
    private static let build = EntryClients.User(name: "build", number: 1000)
    private static let ci = Process(unit: "ci.service", executable: "/usr/bin/git")

    @Test func whateverIsWrittenHasToHold() {
        let clients = EntryClients(
            users: [Self.build], units: ["ci.service", "cd.service"], executables: ["/usr/bin/git"])
        #expect(clients.admits(user: 1000, processes: [Self.ci]))
        #expect(
            clients.admits(user: 1000, processes: [Self.ci, Process(unit: "cd.service", executable: "/usr/bin/git")]))
        #expect(!clients.admits(user: 0, processes: [Self.ci]))
        #expect(!clients.admits(user: 1000, processes: [Process(unit: "other.service", executable: "/usr/bin/git")]))
        #expect(!clients.admits(user: 1000, processes: [Process(unit: "ci.service", executable: "/usr/bin/curl")]))
        // Any process that holds the connection can send over it.
        #expect(
            !clients.admits(user: 1000, processes: [Self.ci, Process(unit: "ci.service", executable: "/usr/bin/sh")]))
    }

    @Test func whatIsUnknownHoldsForNothing() {
        for clients in [
            EntryClients(users: [Self.build]), EntryClients(units: ["ci.service"]),
            EntryClients(executables: ["/usr/bin/git"]),
        ] {
            #expect(!clients.admits(user: nil, processes: []))
            #expect(!clients.admits(user: nil, processes: [Process(unit: nil, executable: nil)]))
            #expect(clients.admits(user: 1000, processes: [Self.ci]))
        }
        #expect(
            !EntryClients(units: ["ci.service"]).admits(
                user: 1000, processes: [Self.ci, Process(unit: nil, executable: "/usr/bin/git")]))
        #expect(EntryClients(users: [Self.build]).admits(user: 1000, processes: []))
    }

    private func load(_ clients: String, action: String = "intercept") throws -> (EntryClients?, warnings: [String]) {
        let bed = try ConfigurationBed(pins: "hosts: [{match: a.test, action: \(action), clients: \(clients)}]\n")
        let snapshot = try bed.load()
        return (snapshot.entry(for: "a.test", port: 443)?.clients, snapshot.warnings.map(\.message))
    }

    @Test func isRead() throws {
        let (clients, warnings) = try load("{users: [root, 4242], units: ci.service, executables: [/bin/../bin/sh]}")
        #expect(
            clients?.users == [
                EntryClients.User(name: "root", number: 0), EntryClients.User(name: "4242", number: 4242),
            ])
        #expect(clients?.units == ["ci.service"])
        // Symbolic links are followed, because the kernel reports resolved paths.
        #expect(clients?.executables == ["/usr/bin/dash"] || clients?.executables?.first?.hasSuffix("sh") == true)
        #expect(warnings.isEmpty, "\(warnings)")
        for action in ["tunnel", "verify-tunnel"] {
            #expect(try load("{users: [root]}", action: action).0?.users?.count == 1)
        }
        #expect(try load("null").0 == nil)
        #expect(
            try load("{users: [root]}", action: "deny").warnings == [
                "clients has no effect: the host is denied to everybody"
            ])
        #expect(
            try load("{executables: [/nowhere/x]}").warnings == ["executables: there is no /nowhere/x on this machine"])
    }

    @Test(arguments: [
        ("{users: []}", "users: the list is empty, so nobody could use the entry"),
        ("{users: [no-such-user]}", "there is no user \"no-such-user\"; getent passwd shows which there are"),
        ("{users: [\"+1\"]}", "there is no user"), ("{users: [-1]}", "there is no user"),
        ("{}", "nothing to check"),
        ("{user: [root]}", "unknown key \"user\" in \"clients\"; did you mean \"users\"?"),
        ("{units: [ci]}", "\"ci\" is not the name of a unit that processes run in"),
        ("{units: [a.timer]}", "is not the name of a unit"),
        ("{units: [.service]}", "is not the name of a unit"), ("{units: [a/b.service]}", "is not the name of a unit"),
        ("{units: [user.slice]}", "is not the name of a unit"),
        ("{executables: [curl]}", "\"curl\" is not an absolute path"),
        ("[root]", "\"clients\" must be a mapping"), ("{users: {root: yes}}", "takes a value or a list"),
    ]) func explainsProblems(_ clients: String, _ expected: String) throws {
        do {
            _ = try load(clients)
            Issue.record("nothing is wrong with \(clients)")
        } catch let problems as ConfigurationProblems {
            #expect(problems.description.contains(expected), "\(problems)")
        }
    }

    @Test func saysWhetherProcessesAreAskedFor() throws {
        func asks(_ pins: String) throws -> Bool { try ConfigurationBed(pins: pins).load().asksForProcesses }
        #expect(try !asks("hosts: [{match: a.test, clients: {users: [root]}}]\n"))
        #expect(try asks("hosts: [{match: a.test}, {match: b.test, clients: {units: [a.service]}}]\n"))
        #expect(try !asks("hosts: []\n"))
    }
}
