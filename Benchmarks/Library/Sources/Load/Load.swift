import Glibc

/// A client library that is measured.
public protocol LoadClient: Sendable {
    /// - Returns: the bytes of the body.
    func get(_ url: String) async throws -> Int
    func download(_ url: String, to path: String) async throws
    func end() async throws
}

/// The work that the arguments ask for.
public struct Load: Sendable {
    public enum Work: Sendable {
        /// `count` requests, `atOnce` at a time, over connections already in use.
        case get(count: Int, atOnce: Int)
        /// This many requests at a time, the first of the process.
        case first(atOnce: Int)
        case download(path: String)
    }

    public let url: String
    /// Anchors, in PEM.
    public let authority: String
    public let work: Work
    /// Connections to a host, at most; nil: as many as the library allows by default.
    public let connections: Int?

    /// URL AUTHORITY, then `get COUNT AT-ONCE`, `first AT-ONCE [CONNECTIONS]` or `download PATH`.
    public init(_ arguments: [String] = CommandLine.arguments) {
        guard arguments.count > 4 else {
            Self.fail("usage: URL AUTHORITY get COUNT AT-ONCE | first AT-ONCE [CONNECTIONS] | download PATH")
        }
        url = arguments[1]
        authority = arguments[2]
        let last = arguments.count > 5 ? Int(arguments[5]) : nil
        // As many as requests at one time, or as first ones are given.
        connections = last
        switch (arguments[3], Int(arguments[4]), last) {
        case ("get", let count?, let atOnce?) where atOnce > 0: work = .get(count: count, atOnce: atOnce)
        case ("first", let atOnce?, _): work = .first(atOnce: atOnce)
        case ("download", _, _): work = .download(path: arguments[4])
        default: Self.fail("none of the kinds of work: \(arguments[3...])")
        }
    }

    /// Does it, and prints a line of JSON: seconds, those of a processor, and KiB resident at most.
    public func run(_ client: some LoadClient) async throws {
        if case .get(_, let atOnce) = work { try await get(2 * atOnce, atOnce, client) }
        let (began, processor) = (ContinuousClock.now, Self.processorSeconds)
        switch work {
        case .get(let count, let atOnce): try await get(count, atOnce, client)
        case .first(let atOnce): try await get(atOnce, atOnce, client)
        case .download(let path): try await client.download(url, to: path)
        }
        let (seconds, used) = (ContinuousClock.now - began, Self.processorSeconds - processor)
        print("{\"seconds\": \(seconds / .seconds(1)), \"processor\": \(used), \"resident\": \(Self.resident)}")
        try await client.end()
    }

    private func get(_ count: Int, _ atOnce: Int, _ client: some LoadClient) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<atOnce {
                group.addTask {
                    for _ in 0..<count / atOnce where try await client.get(url) != 1024 {
                        Self.fail("not the document that was asked for")
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    private static var processorSeconds: Double {
        var usage = rusage()
        getrusage(Int32(RUSAGE_SELF.rawValue), &usage)
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000 }
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    /// VmHWM of proc(5): the largest size that getrusage(2) knows is also that of the program before exec.
    private static var resident: Int {
        guard let file = fopen("/proc/self/status", "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        var size = 0
        while fgets(&line, CInt(line.count), file) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            if text.hasPrefix("VmHWM:") { size = Int(text.filter(\.isNumber)) ?? 0 }
        }
        return size
    }

    private static func fail(_ text: String) -> Never {
        let line = Array("\(text)\n".utf8)
        _ = write(STDERR_FILENO, line, line.count)
        exit(2)
    }
}
