import Testing

/// What users meet first: help, wrong usage, and the documented exit codes.
@Suite(.serialized) struct UsageTests {
    @Test(arguments: [
        [], ["run"], ["check"], ["ca"], ["ca", "create"], ["ca", "show"], ["ca", "install"], ["ca", "remove"], ["env"],
        ["exec"], ["doctor"], ["status"], ["reload"], ["pin"], ["explain"], ["lint"], ["bundle"], ["bundle", "key"],
        ["bundle", "root"], ["bundle", "create"], ["bundle", "timestamp"], ["bundle", "sign"], ["bundle", "verify"],
        ["bundle", "show"], ["bundle", "diff"],
    ]) func helps(_ command: [String]) throws {
        let bed = try CommandBed()
        let outcome = try CommandBed.run(
            [CommandBed.executable] + command + ["--help"], in: bed.directory, environment: bed.environment)
        #expect(outcome.code == 0)
        #expect(outcome.errors == "")
        #expect(outcome.output.contains("USAGE: " + (["pinproxy"] + command).joined(separator: " ")))
        for line in outcome.output.split(separator: "\n") where !line.hasPrefix("USAGE") {
            #expect(line.count <= 80)
        }
    }

    @Test func listsItsCommands() throws {
        let help = try CommandBed().run("--help").output
        for command in [
            "run", "check", "pin", "explain", "lint", "ca", "env", "exec", "doctor", "status", "reload", "bundle",
        ] {
            #expect(help.contains("\n  \(command) "))
        }
    }

    @Test(arguments: [
        ["bogus"], ["run", "--bogus"], ["check", "surplus"], ["check", "--config"], ["ca", "bogus"], ["exec"],
        ["exec", "--"], ["doctor", "--timeout", "0"],
    ]) func refusesWrongUsage(_ arguments: [String]) throws {
        let bed = try CommandBed()
        let outcome = try CommandBed.run(
            [CommandBed.executable] + arguments, in: bed.directory, environment: bed.environment)
        #expect(outcome.code == 2)
        #expect(outcome.output == "")
        #expect(outcome.errors.contains("Usage: pinproxy"))
    }

    @Test func saysItsVersion() throws {
        let outcome = try CommandBed().run("--version")
        #expect(outcome.code == 0)
        #expect(outcome.output.hasPrefix("pinproxy "))
    }
}
