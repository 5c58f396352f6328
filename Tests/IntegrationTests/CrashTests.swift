import Foundation
import Testing

/// What a crash of the proxy leaves in its log.
@Suite(.timeLimit(.minutes(5)))
struct CrashTests {
    private static let exchanges = 50

    /// While others are under load, one connection makes its exchanges and then crashes the proxy after reading the
    /// last response. At that point the previous exchange had finished.
    private static let program = """
        import os, socket, sys, threading
        port, process, signal, url, count = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], \
        int(sys.argv[5])
        def connection():
            client = socket.create_connection(("127.0.0.1", port))
            return client, client.makefile("rb")
        def exchange(client, answers, path):
            client.sendall(f"GET {url}{path} HTTP/1.1\\r\\nHost: {url[7:]}\\r\\n\\r\\n".encode())
            length = 0
            while line := answers.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            return answers.read(length)
        def load(client, answers):
            try:
                while exchange(client, answers, "/large/1"):
                    pass
            except OSError:
                pass
        for _ in range(4):
            threading.Thread(target=load, args=connection(), daemon=True).start()
        ours = connection()
        for number in range(count):
            exchange(*ours, f"/large/{1000 + number}")
        os.kill(process, signal)
        """

    @Test(.disabled(if: Sanitizer.isOn, "the sanitizer reports these signals"), arguments: [SIGABRT, SIGSEGV, SIGILL])
    func whatTheProxyHadToSayIsWritten(_ signal: Int32) async throws {
        try await withTestBed { bed in
            let origin = try await PythonPeer.origin(in: bed, chain: nil)
            // The Swift runtime would write a backtrace among the lines, where it has the program for that.
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, hosts: ["origin.test": "127.0.0.1"], environment: ["SWIFT_BACKTRACE": "enable=no"])
            // Signal 0 does nothing but mark the end as requested. The client crashes the proxy.
            proxy.process.send(signal: 0)
            let run = try await bed.run([
                PythonPeer.python, "-c", Self.program, "\(proxy.port)", "\(proxy.process.identifier)", "\(signal)",
                "http://origin.test:\(origin.port)", "\(Self.exchanges)",
            ])
            #expect(run.succeeded, "\(run)")
            #expect(try await proxy.process.ending() == .signalled(signal))
            let lines = await proxy.process.output.complete
            for line in lines { #expect(LogEvent(line: line) != nil, "\(line)") }
            let paths = proxy.events.all("exchange").compactMap { $0["path"] }
            #expect(paths.contains { $0 == "/large/\(1000 + Self.exchanges - 2)" }, "\(paths.suffix(40))")
            #expect(paths.contains("/large/1"))
            let crash = try #require(proxy.events.all("proxy.crash").first)
            #expect(crash["signal"] == [SIGABRT: "SIGABRT", SIGSEGV: "SIGSEGV", SIGILL: "SIGILL"][signal], "\(crash)")
            #expect(crash["level"] == "critical")
        }
    }

    private static let isNamedCore =
        (try? String(contentsOfFile: "/proc/sys/kernel/core_pattern", encoding: .utf8)).map {
            !$0.contains("|") && !$0.contains("/")
        } ?? false

    /// A core dump holds keys, passwords and what clients send. It must be requested explicitly.
    @Test(
        .disabled(if: Sanitizer.isOn, "the sanitizer reports these signals"),
        .enabled(if: isNamedCore && geteuid() == 0, "needs root, and cores that the kernel writes to files"),
        arguments: [false, true])
    func noCoreIsLeftUnlessItIsAskedFor(_ isAskedFor: Bool) async throws {
        try await withTestBed { bed in
            try bed.file("work/empty", "")
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, environment: ["SWIFT_BACKTRACE": "enable=no"],
                launcher: ["/usr/bin/prlimit", "--core=unlimited", "/usr/bin/env", "--chdir", bed.path("work")])
            let process = proxy.process.identifier
            if isAskedFor {
                let run = try await bed.run(["/usr/bin/prlimit", "--core=unlimited", "--pid", "\(process)"])
                #expect(run.succeeded, "\(run)")
            }
            proxy.process.send(signal: SIGSEGV)
            #expect(try await proxy.process.ending() == .signalled(SIGSEGV))
            let cores = try FileManager.default.contentsOfDirectory(atPath: bed.path("work")).filter {
                $0.hasPrefix("core")
            }
            #expect(cores.isEmpty == !isAskedFor, "\(cores)")
            guard let core = cores.first else { return }
            let secret = try bed.secretOfKey(at: (proxy.authority as NSString).deletingPathExtension + ".key")
            let bytes = try Data(contentsOf: URL(fileURLWithPath: bed.path("work/\(core)")))
            #expect(bytes.range(of: secret) != nil, "the key isn't found where it has to be")
        }
    }
}
