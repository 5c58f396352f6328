import Testing

@Suite(.timeLimit(.minutes(2)))
struct PeakMemoryTests {
    /// Clients that have sent 60 KiB of a head hold as much of the proxy's memory each. One that came last stays, so
    /// that what the others leave lies between what is in use, where the C library keeps it.
    @Test(.disabled(if: Sanitizer.isOn, "its allocator keeps what is freed on purpose"))
    func whatAPeakTookIsGivenBack() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            #expect(try await shared.curl(shared.plainURL + "/echo").succeeded)
            let before = try shared.proxy.residentMemory()
            let head = "GET / HTTP/1.1\r\nX: " + String(repeating: "x", count: 60 << 10)
            var clients: [RawConnection] = []
            for _ in 0..<500 {
                let client = try RawConnection(to: shared.proxy)
                try await client.send(head)
                clients.append(client)
            }
            try await eventually("the peak") { try shared.proxy.residentMemory() > before + (25 << 20) }
            clients.removeFirst(499)
            try await eventually("the memory of the peak to be given back") {
                try shared.proxy.residentMemory() < before + (8 << 20)
            }
            withExtendedLifetime(clients) {}
        }
    }
}
