import Foundation
import Testing

/// Large bodies and slow peers: every byte arrives, and the proxy's memory doesn't follow the size.
@Suite(.timeLimit(.minutes(5)))
struct TransferTests {
    /// The sanitizer keeps 256 MiB of freed memory, and pads what is in use.
    private static let memoryLimit = Sanitizer.isOn ? 512 << 20 : 64 << 20

    /// Creates a file of pseudo-random bytes quickly, and returns its checksum.
    private func largeFile(in bed: TestBed, name: String, bytes: Int) async throws -> String {
        let key = String(repeating: "5a", count: 16)
        let run = try await bed.run([
            "/bin/sh", "-ec",
            """
            mkdir -p $(dirname \(name))
            head -c \(bytes) /dev/zero | openssl enc -aes-128-ctr -nosalt -K \(key) -iv \(key) -out \(name)
            chmod 644 \(name); sha256sum < \(name)
            """,
        ])
        guard run.succeeded else { throw TestBedError("no large file: \(run)") }
        return String(run.output.prefix(64))
    }

    @Test func aGigabyteComesDownAndGoesUp() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let roots = try TestRoots("Files")
            let nginx = try await NginxOrigin(
                in: bed, sites: [.init(name: "files.test", chain: roots.chain("files.test"))])
            let proxy = try await ProxyProcess(
                in: bed, folder: "second", trust: roots.write(to: bed, name: "files"),
                hosts: ["files.test": "127.0.0.1"])
            let sum = try await largeFile(in: bed, name: "nginx/documents/large", bytes: 1 << 30)
            let down = try await bed.run(
                ["/bin/sh", "-c", "curl -sS https://files.test:\(nginx.port)/large | sha256sum"],
                environment: proxy.clientEnvironment)
            #expect(down.output.hasPrefix(sum), "\(down)")
            #expect(try proxy.peakMemory() < Self.memoryLimit)

            let up = try await shared.curl(
                "-H", "Expect:", "-T", bed.path("nginx/documents/large"), shared.url + "/echo")
            #expect(up.output.contains(sum), "\(up)")
            #expect(try shared.proxy.peakMemory() < Self.memoryLimit)
        }
    }

    @Test func aSlowReaderHoldsTheOriginBack() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let run = try await shared.curl(
                "--limit-rate", "50M", "-o", "/dev/null", "-w", "%{size_download}", shared.url + "/large/200000000")
            #expect(run.output == "200000000", "\(run)")
            #expect(try shared.proxy.peakMemory() < Self.memoryLimit)
        }
    }

    @Test func aSlowOriginHoldsTheClientBack() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let sum = try await largeFile(in: bed, name: "up", bytes: 200_000_000)
            let run = try await shared.curl("-H", "Expect:", "-T", bed.path("up"), shared.url + "/slow-echo")
            #expect(run.output.contains(sum), "\(run)")
            #expect(try shared.proxy.peakMemory() < Self.memoryLimit)
        }
    }

    @Test func aSlowWriterIsWaitedFor() async throws {
        try await withTestBed { bed in
            // Slower than idle_client in total, but never idle for that long.
            let shared = try await OriginBed.prepare(bed, sections: ["timeouts": ["idle_client: 2s"]])
            let sum = try await largeFile(in: bed, name: "up", bytes: 4_000_000)
            let run = try await shared.curl(
                "-H", "Expect:", "--limit-rate", "1M", "-T", bed.path("up"), shared.url + "/echo")
            #expect(run.output.contains(sum), "\(run)")
        }
    }

    @Test func aTunnelIsRelayedWhole() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let origin = try await PythonPeer.origin(in: bed, chain: roots.chain(OriginBed.name))
            let proxy = try await ProxyProcess(
                in: bed, pins: "defaults: {action: tunnel}\n", trust: roots.write(to: bed),
                hosts: [OriginBed.name: "127.0.0.1"])
            let pipes = try proxy.descriptors(of: "pipe").count
            let sum = try await largeFile(in: bed, name: "up", bytes: 200_000_000)
            let upload = try await bed.start([
                "curl", "-sS", "--proxy", proxy.url, "--cacert", bed.path("roots.pem"), "-H", "Expect:", "-T",
                bed.path("up"), "https://\(OriginBed.name):\(origin.port)/slow-echo",
            ])
            // Through a kernel pipe, which is returned.
            try await eventually("a pipe") { try proxy.descriptors(of: "pipe").count > pipes }
            #expect(try await upload.ending() == .exited(0))
            #expect(await upload.output.text.contains(sum))
            #expect(try proxy.peakMemory() < Self.memoryLimit)
            try await eventually("no pipe") { try proxy.descriptors(of: "pipe").count == pipes }
        }
    }
}
