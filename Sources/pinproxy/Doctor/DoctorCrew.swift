internal import EventLoop
internal import FoundationEssentials
internal import Glibc

/// Several programs examined at a time, each by a process of its own: most of what they take is waiting.
final class DoctorCrew {
    /// At one time; each keeps a processor busy for a part of its time.
    private static let size = max(4, 2 * Processors.available)
    /// What is read of one.
    private static let longest = 1 << 20

    private struct Member {
        let place: Int
        let process: pid_t
        let output: CInt
        var text: [UInt8] = []
    }

    private let arguments: [String]
    private let interrupts = Interrupts()
    private var members: [Member] = []

    init(_ options: ConfigurationOptions, timeout: Int) throws {
        let choice = try options.choice()
        arguments = [
            "pinproxy", "doctor", "--json", "--timeout", "\(timeout)", "--config", choice.file, "--state-directory",
            choice.stateDirectory,
        ]
    }

    /// On those that are installed.
    /// - Parameter told: called with nil first, and then for each as soon as it is known.
    /// - Returns: in the order of the programs.
    func reports(on programs: [ClientProgram], _ told: (ClientReport?) -> Void) throws -> [ClientReport] {
        var found = [[ClientReport]?](repeating: nil, count: programs.count)
        // The last are browsers, which take longest.
        var waiting = Array(programs.indices)
        told(nil)
        while !waiting.isEmpty || !members.isEmpty {
            while members.count < Self.size, let place = waiting.popLast() {
                members.append(try start(programs[place].name, at: place))
            }
            for (place, text) in try awaitSome() {
                let reports = Self.reports(in: text)
                for report in reports { told(report) }
                found[place] = reports
            }
        }
        return found.flatMap { $0 ?? [] }
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
            return Member(place: place, process: try program.start(), output: ends[0])
        } catch {
            close(ends[0])
            throw error
        }
    }

    /// - Returns: what those have said that have ended.
    private func awaitSome() throws -> [(place: Int, text: [UInt8])] {
        var wanted = members.map { pollfd(fd: $0.output, events: Int16(POLLIN), revents: 0) }
        poll(&wanted, nfds_t(wanted.count), 100)
        if let signal = interrupts.arrived() { try stop(by: signal) }
        var ended: [(place: Int, text: [UInt8])] = []
        for index in members.indices.reversed() where wanted[index].revents != 0 {
            var chunk = [UInt8](repeating: 0, count: 8192)
            let count = read(members[index].output, &chunk, chunk.count)
            if count > 0, members[index].text.count < Self.longest {
                members[index].text += chunk[..<count]
            } else if count == 0 || errno != EINTR {
                let member = members.remove(at: index)
                close(member.output)
                while waitpid(member.process, nil, 0) < 0, errno == EINTR {}
                ended.append((member.place, member.text))
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
