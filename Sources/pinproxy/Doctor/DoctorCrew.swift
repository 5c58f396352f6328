internal import FoundationEssentials
internal import Glibc
internal import PinproxyEventLoop

/// Examines several programs at a time, each by its own process.
final class DoctorCrew {
    /// At one time: each keeps a processor busy, but for what it waits for the proxy.
    private static let size = Processors.available + 1
    /// The slowest clients come first, so that none is left when all others are done.
    private static let longestFirst = [
        "firefox", "mvn", "java", "chromium", "yt-dlp", "aws", "pip", "python3: aiohttp", "npm", "composer",
        "python3: urllib3", "hg", "python3: httpx", "gem",
    ]
    /// After so long people want to know what has taken it.
    static let usualSeconds = 15
    /// Most bytes read of one client's output.
    private static let longestText = 1 << 20

    private struct Member {
        let place: Int
        let process: pid_t
        let output: CInt
        let began: ContinuousClock.Instant
        var text: [UInt8] = []
    }

    private let arguments: [String]
    private let interrupts = Interrupts()
    private var members: [Member] = []
    /// The program that took longest, and how long.
    private(set) var longest: (name: String, time: Duration)?

    init(_ options: ConfigurationOptions, timeout: Int) throws {
        let choice = try options.choice()
        arguments = [
            "pinproxy", "doctor", "--json", "--timeout", "\(timeout)", "--config", choice.file, "--state-directory",
            choice.stateDirectory,
        ]
    }

    /// Tests the installed programs.
    /// - Parameter told: called with nil first, and then for each as soon as it is known.
    /// - Returns: in the order of the programs.
    func reports(on programs: [ClientProgram], _ told: (ClientReport?) -> Void) throws -> [ClientReport] {
        var found = [[ClientReport]?](repeating: nil, count: programs.count)
        // The last is taken first.
        var waiting = programs.indices.sorted { Self.rank(programs[$0]) > Self.rank(programs[$1]) }
        told(nil)
        while !waiting.isEmpty || !members.isEmpty {
            while members.count < Self.size, let place = waiting.popLast() {
                members.append(try start(programs[place].name, at: place))
            }
            for (place, text, time) in try awaitSome() {
                if time > longest?.time ?? .zero { longest = (programs[place].name, time) }
                let reports = Self.reports(in: text)
                for report in reports { told(report) }
                found[place] = reports
            }
        }
        return found.flatMap { $0 ?? [] }
    }

    private static func rank(_ program: ClientProgram) -> Int {
        longestFirst.firstIndex(of: program.name) ?? longestFirst.count
    }

    private static func reports(in text: [UInt8]) -> [ClientReport] {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return (try? decoder.decode([ClientReport].self, from: Data(text))) ?? []
    }

    private func start(_ name: String, at place: Int) throws -> Member {
        let ends = try ChildProcess.makePipe()
        defer { close(ends[1]) }
        var program = ProgramStart("/proc/self/exe", arguments + [name])
        program.descriptors = [
            (STDIN_FILENO, .nothing), (STDOUT_FILENO, .descriptor(ends[1])), (STDERR_FILENO, .nothing),
        ]
        program.group = .own
        program.blockedSignals = .empty
        do {
            return Member(place: place, process: try program.start(), output: ends[0], began: .now)
        } catch {
            close(ends[0])
            throw error
        }
    }

    /// - Returns: the output and duration of members that have ended.
    private func awaitSome() throws -> [(place: Int, text: [UInt8], time: Duration)] {
        var wanted = members.map { pollfd(fd: $0.output, events: Int16(POLLIN), revents: 0) }
        poll(&wanted, nfds_t(wanted.count), 100)
        if let signal = interrupts.arrived() { try stop(by: signal) }
        var ended: [(place: Int, text: [UInt8], time: Duration)] = []
        for index in members.indices.reversed() where wanted[index].revents != 0 {
            var chunk = [UInt8](repeating: 0, count: 8192)
            let count = read(members[index].output, &chunk, chunk.count)
            if count > 0, members[index].text.count < Self.longestText {
                members[index].text += chunk[..<count]
            } else if count == 0 || errno != EINTR {
                let member = members.remove(at: index)
                close(member.output)
                while waitpid(member.process, nil, 0) < 0, errno == EINTR {}
                ended.append((member.place, member.text, .now - member.began))
            }
        }
        return ended
    }

    /// Each cleans up after itself.
    private func stop(by signal: CInt) throws {
        for member in members { kill(member.process, signal) }
        for member in members {
            while waitpid(member.process, nil, 0) < 0, errno == EINTR {}
            close(member.output)
        }
        members = []
        ChildCommand.Ending.signalled(signal).imitate()
    }
}
