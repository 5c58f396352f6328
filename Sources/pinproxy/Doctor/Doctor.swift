internal import ArgumentParser
internal import Glibc
internal import PinproxyConfiguration
internal import PinproxyDaemon
internal import PinproxySecurity

struct Doctor: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", _superCommandName: Pinproxy.name,
        abstract: "Test the HTTP clients installed here through the running proxy, and show what each needs.",
        discussion: """
            Each installed program makes two requests, with the variables that exec sets: to pinproxy.test, whose pin \
            is right, and to wrong.pinproxy.test, whose pin is wrong. The proxy answers both itself, and connects to \
            no server. Your own settings of a program apply; none of them is changed.

            The columns: whether the program takes the proxy, whether it trusts the proxy's authority (- if unknown), \
            and what it shows when it is refused: the reason, the status (502), or nothing.

            Programs that don't work are also tried with exec --transparent, and your own proxy and certificate \
            settings for them are shown.

            Exits 0 if all programs found work, 1 otherwise. --json prints a list of objects: client, \
            version, takes_proxy, trusts_authority, works, shows, exec_tells, transparent, settings, set, works_then, \
            said.

            Examples:
              pinproxy doctor
              pinproxy doctor curl
              pinproxy doctor --json
            """)

    @OptionGroup var options: ConfigurationOptions
    @Flag(help: "Print JSON.") var json = false
    @Option(help: ArgumentHelp("How long each call of a program may take.", valueName: "seconds"))
    var timeout = 30
    @Argument(
        help: ArgumentHelp("One program only.", valueName: "client"),
        completion: .list(ClientProgram.all.map(\.name).filter { !$0.contains(" ") }))
    var client: String?

    func validate() throws {
        guard timeout > 0 else { throw ValidationError("--timeout takes a number of seconds, from 1 on") }
    }

    func run() throws {
        let programs = try ClientProgram.named(client)
        let snapshot = try options.load(readsPins: false)
        let files = StateFiles(directory: snapshot.stateDirectory)
        _ = try RunningProxy.require(files)
        try warn(snapshot, files)
        if client == nil || programs.count > 1 {
            let began = ContinuousClock.now
            let crew = try DoctorCrew(options, timeout: timeout)
            let reports = try crew.reports(on: programs, told)
            if !json, let remark = DoctorText.remark(on: .now - began, crew.longest) { Standard.output(remark) }
            return try tell(reports)
        }
        let examination = try Examination(options, snapshot, patience: .seconds(timeout))
        defer { examination.end() }
        do {
            try tell(try reports(on: programs, examination))
        } catch let interrupted as BoundedProcess.Interrupted {
            examination.end()
            ChildCommand.Ending.signalled(interrupted.signal).imitate()
        }
    }

    private func reports(on programs: [ClientProgram], _ examination: Examination) throws -> [ClientReport] {
        var reports: [ClientReport] = []
        for program in programs {
            guard let version = try examination.version(of: program) else { continue }
            let report = try examination.report(on: program, version: version)
            if reports.isEmpty { told(nil) }
            reports.append(report)
            told(report)
        }
        return reports
    }

    /// For people, each as soon as it is known.
    /// - Parameter report: nil: the first will follow.
    private func told(_ report: ClientReport?) {
        if !json { Standard.output(report.map(DoctorText.row) ?? DoctorText.heading) }
    }

    private func tell(_ reports: [ClientReport]) throws {
        if let client, reports.isEmpty {
            throw CommandFailure("\(client.printable) is not installed here, or not in PATH")
        }
        Standard.output(json ? JSONText.of(reports) : DoctorText.rest(reports))
        if !reports.allSatisfy(\.works) { throw CommandFailure(code: 1) }
    }

    /// Says before the first call what will go wrong with all of them.
    private func warn(_ snapshot: Snapshot, _ files: StateFiles) throws {
        let given = ProxyURL.given(to: snapshot.proxy, inherited: ListenFile(in: snapshot.stateDirectory))
        let session = ProxySession(files, given: given, needs: .refusals)
        let environment = try options.clientEnvironment(snapshot, session: session)
        session.warn(of: "every program", using: environment.proxy, asksForUsers: snapshot.proxy.users != nil)
        environment.warnIfBypassed()
        session.finish { _ in }
    }
}

extension ClientProgram {
    /// The program of that name, or else those of that language (`python3`), or that library (`requests`); nil: all.
    static func named(_ name: String?) throws -> [ClientProgram] {
        guard let name else { return all }
        for found in [
            all.filter { $0.name == name }, all.filter { $0.name.split(separator: ": ").contains(name[...]) },
        ]
        where !found.isEmpty {
            return found
        }
        throw CommandFailure(
            code: CommandFailure.usage,
            message: "\(name.printable) is not a program that pinproxy can test; it can test "
                + all.map(\.name).joined(separator: ", "))
    }
}

/// The table that `pinproxy doctor` prints.
enum DoctorText {
    private static let widths = (client: 22, version: 12, yesOrNo: 7, shows: 9)

    static let heading = line("CLIENT", "VERSION", "PROXY", "TRUST", "REFUSAL", "")

    static func row(_ report: ClientReport) -> String {
        line(
            report.client, report.version, word(report.takesProxy), word(report.trustsAuthority),
            report.works ? report.shows.rawValue : "-", report.works ? "works" : "does not work")
    }

    /// The settings, and the number of working clients.
    static func rest(_ reports: [ClientReport]) -> String {
        var lines: [String] = []
        for report in reports where !report.works {
            lines += ["", "\(report.client): \(report.said)"]
            if let set = report.set {
                let tried =
                    report.worksThen.map { $0 ? " (tried: it works)" : " (tried here: that is not enough)" } ?? ""
                lines.append("  set: \(set.replacing("`", with: ""))\(tried)")
            }
            lines += report.settings.map { "  your setting: \($0)" }
        }
        lines += ["", "\(reports.count(where: \.works)) of \(Count(reports.count, "program")) work"]
        return lines.joined(separator: "\n")
    }

    /// Why it took so long; nil: it didn't.
    static func remark(on time: Duration, _ longest: (name: String, time: Duration)?) -> String? {
        guard time.components.seconds >= DoctorCrew.usualSeconds, let longest else { return nil }
        return
            "\nthis took \(time.components.seconds) s; longest took \(longest.name): "
            + "\(longest.time.components.seconds) s"
    }

    private static func word(_ answer: Bool?) -> String { answer.map { $0 ? "yes" : "no" } ?? "-" }

    private static func line(_ columns: String...) -> String {
        let widths = [widths.client, widths.version, widths.yesOrNo, widths.yesOrNo, widths.shows]
        return zip(columns, widths).map { $0.0.padded(to: $0.1 - 1) + " " }.joined() + (columns.last ?? "")
    }
}
