import Foundation
import Glibc
import PinproxyEventLoop
import Testing

@testable import PinproxyLocalPeers

/// Against the kernel: connections of this very process and of its children.
@Suite struct SocketTableTests {
    private struct Connection: ~Copyable {
        let accepted: Descriptor
        let client: Descriptor
        let source: SocketAddress
    }

    private func connect(to listener: borrowing Descriptor) throws -> Connection {
        let address = try #require(Socket.localAddress(listener.raw))
        let client = try Socket.beginConnect(to: address)
        var wanted = pollfd(fd: client.raw, events: Int16(POLLOUT), revents: 0)
        #expect(poll(&wanted, 1, 10_000) == 1)
        wanted = pollfd(fd: listener.raw, events: Int16(POLLIN), revents: 0)
        #expect(poll(&wanted, 1, 10_000) == 1)
        guard case .accepted(let accepted, let peer) = Socket.accept(listener.raw), let peer else {
            throw SystemError(code: ECONNABORTED, call: "accept")
        }
        return Connection(accepted: accepted, client: client, source: peer)
    }

    private func listen(on ip: String = "127.0.0.1") throws -> Descriptor {
        try Socket.listen(on: SocketAddress(ip: #require(IPAddress(ip)), port: 0), backlog: 8, reusePort: false)
    }

    private func inode(_ descriptor: CInt) -> UInt64 {
        var status = stat()
        fstat(descriptor, &status)
        return UInt64(status.st_ino)
    }

    @Test(arguments: ["127.0.0.1", "127.3.2.1", "::1"]) func knowsWhoConnects(_ ip: String) throws {
        let table = try SocketTable()
        let listener = try listen(on: ip)
        let connection = try connect(to: listener)
        let found = table.peer(of: connection.accepted.raw, from: connection.source)
        #expect(found == LocalSocket(user: geteuid(), inode: inode(connection.client.raw)))
    }

    /// A program with IPv6 sockets only connects to IPv4 through mapped addresses.
    @Test func knowsMappedAddresses() throws {
        let listener = try listen()
        let port = try #require(Socket.localAddress(listener.raw)).port
        let raw = socket(AF_INET6, CInt(SOCK_STREAM.rawValue), 0)
        let client = Descriptor(owning: raw)
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        #expect(inet_pton(AF_INET6, "::ffff:127.0.0.1", &address.sin6_addr) == 1)
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(raw, $0, socklen_t(MemoryLayout<sockaddr_in6>.size))
            }
        }
        #expect(status == 0)
        guard case .accepted(let accepted, let peer?) = Socket.accept(listener.raw) else {
            Issue.record("nobody came")
            return
        }
        #expect(try SocketTable().peer(of: accepted.raw, from: peer)?.inode == inode(client.raw))
    }

    /// The kernel reports a closed socket as root's, and the listener where there is no connection.
    @Test func knowsNobodyWhoHasClosed() throws {
        let table = try SocketTable()
        let listener = try listen()
        let address = try #require(Socket.localAddress(listener.raw))
        var source = SocketAddress(ip: address.ip, port: 0)
        let accepted: Descriptor
        do {
            let connection = try connect(to: listener)
            source = connection.source
            accepted = Descriptor(owning: dup(connection.accepted.raw))
        }
        #expect(table.peer(of: accepted.raw, from: source) == nil)
        // From another port than it came from, as if the kernel had been asked too late.
        let other = try connect(to: listener)
        #expect(
            table.peer(of: other.accepted.raw, from: SocketAddress(ip: address.ip, port: other.source.port ^ 1)) == nil)
    }

    /// A client resets its connection, and another takes its port: the first one's data isn't the second's.
    @Test func isNotMisledByAPortThatIsUsedAgain() throws {
        let table = try SocketTable()
        let listener = try listen()
        // The system assigns clients ports on 127.0.0.1, so no other process gets this address's ports.
        let first = try connect(to: listener, from: SocketAddress(ip: #require(IPAddress("127.77.0.1")), port: 0))
        let source = first.source
        var now = linger(l_onoff: 1, l_linger: 0)
        setsockopt(first.client.raw, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
        let accepted = Descriptor(owning: dup(first.accepted.raw))
        shutdownAndClose(first)
        let second = try connect(to: listener, from: source)
        #expect(second.source == source)
        #expect(table.peer(of: second.accepted.raw, from: second.source)?.inode == inode(second.client.raw))
        #expect(table.peer(of: accepted.raw, from: source) == nil)
    }

    private func shutdownAndClose(_ connection: consuming Connection) {}

    /// Connects from the given address.
    private func connect(to listener: borrowing Descriptor, from source: SocketAddress) throws -> Connection {
        let address = try #require(Socket.localAddress(listener.raw))
        let client = Descriptor(owning: socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0))
        var on: CInt = 1
        setsockopt(client.raw, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<CInt>.size))
        #expect(bind(client.raw, to: source) == 0)
        #expect(withAddress(address) { Glibc.connect(client.raw, $0, $1) } == 0)
        guard case .accepted(let accepted, let peer?) = Socket.accept(listener.raw) else {
            throw SystemError(code: ECONNABORTED, call: "accept")
        }
        return Connection(accepted: accepted, client: client, source: peer)
    }

    private func withAddress(_ address: SocketAddress, _ body: (UnsafePointer<sockaddr>, socklen_t) -> CInt) -> CInt {
        var raw = sockaddr_in()
        raw.sin_family = sa_family_t(AF_INET)
        raw.sin_port = address.port.bigEndian
        inet_pton(AF_INET, address.ip.description, &raw.sin_addr)
        return withUnsafePointer(to: &raw) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    private func bind(_ raw: CInt, to address: SocketAddress) -> CInt {
        withAddress(address) { Glibc.bind(raw, $0, $1) }
    }

    // MARK: Unix sockets

    @Test func knowsWhoConnectsToAFile() throws {
        let path = "/tmp/pinproxy-peers-\(getpid())-\(UInt32.random(in: 0 ... .max)).sock"
        defer { unlink(path) }
        let listener = try UnixSocket.listen(at: path, backlog: 8)
        let client = try UnixSocket.connect(to: path, seconds: 5)
        let accepted = Descriptor(owning: try #require(try UnixSocket.accept(listener.raw)))
        let found = try SocketTable().peer(ofUnix: accepted.raw)
        #expect(found == LocalSocket(user: geteuid(), inode: inode(client.raw)))
    }

    // MARK: Processes

    /// Between fork and exec, another test's child holds everything that this process does: the search is then
    /// repeated.
    private func holders(_ descriptor: CInt, count: Int) -> [LocalProcess] {
        var found: [LocalProcess] = []
        for _ in 0..<1000 {
            found = ProcessTable.holders(of: [inode(descriptor)]).processes[inode(descriptor)] ?? []
            if found.count == count { break }
        }
        return found
    }

    @Test func findsTheProcess() throws {
        let listener = try listen()
        let connection = try connect(to: listener)
        // Twice, as in a program that has duplicated it.
        let copy = Descriptor(owning: dup(connection.client.raw))
        let found = holders(copy.raw, count: 1)
        #expect(found.map(\.id) == [getpid()])
        let own = try #require(found.first)
        #expect(own.executable?.hasPrefix("/") == true)
        #expect(own.started > 0)
        #expect(ProcessTable.holders(of: [inode(copy.raw)], among: [getpid()]).processes.count == 1)
        #expect(ProcessTable.holders(of: [inode(copy.raw)], among: [1]).processes.isEmpty)
        #expect(ProcessTable.holders(of: [1]).processes.isEmpty)
        #expect(ProcessTable.holders(of: [1]).overlooked.isEmpty)
    }

    /// The search of a user's descriptors stops at a limit, whether the process is traceable or not. One case at a
    /// time, since the limit is per user.
    @Test(.enabled(if: geteuid() == 0, "needs root, to be another user"), .serialized, arguments: [true, false])
    func looksAtNoMoreThanALimitOfOneUsers(isTraceable: Bool) throws {
        let program = """
            import ctypes, os, socket, sys
            os.setgid(65533); os.setuid(65533)
            sockets = [socket.socket() for _ in range(200)]
            ctypes.CDLL(None).prctl(4, \(isTraceable ? 1 : 0))
            os.write(1, b"%d %d" % (os.fstat(sockets[0].fileno()).st_ino, os.fstat(sockets[-1].fileno()).st_ino))
            sys.stdin.read()
            """
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments = ["-c", program]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        defer {
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
        }
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        let inodes = line.split(whereSeparator: \.isWhitespace).compactMap { UInt64($0) }
        try #require(inodes.count == 2)
        let whole = ProcessTable.holders(of: Set(inodes))
        #expect(Set(whole.processes.keys) == Set(inodes) && whole.overlooked.isEmpty)
        let part = ProcessTable.holders(of: Set(inodes), limit: 100)
        // Other users of this machine may have just as many.
        #expect(Set(part.processes.keys) == [inodes[0]] && part.overlooked.contains(65533))
    }

    @Test(arguments: [
        ("Name:\tx\nUid:\t1000\t1001\t1002\t1003\nGid:\t5\t5\t5\t5\n", 1001 as UInt32?), ("Uid:\t0\t0\t0\t0", 0),
        ("", nil), ("Uid:\n", nil),
        ("Uid:\t1\n", nil), ("Uid:\tx\ty\n", nil),
    ])
    func readsTheEffectiveUser(status: String, user: UInt32?) {
        #expect(DescriptorAllowance.user(ofStatus: status) == user)
    }

    /// Both hold the connection, and either can send over it.
    @Test func findsAllWhoShareIt() throws {
        let listener = try listen()
        let connection = try connect(to: listener)
        // A child that inherits the socket as its standard input.
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, connection.client.raw, 0)
        var child = pid_t()
        var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("sleep"), strdup("60"), nil]
        defer { for argument in arguments { free(argument) } }
        #expect(posix_spawn(&child, "/bin/sleep", &actions, nil, &arguments, nil) == 0)
        defer {
            kill(child, SIGKILL)
            waitpid(child, nil, 0)
        }
        let found = holders(connection.client.raw, count: 2)
        #expect(found.map(\.id) == [getpid(), child])
        #expect(found.last?.executable?.hasSuffix("/bin/sleep") == true)
    }
}
