import Testing

@Suite struct CheckTests {
    @Test func acceptsWhatCanBeUsed() throws {
        let outcome = try CommandBed(configuration: "pins: null\n").configured("check")
        #expect(outcome.code == 0)
        #expect(outcome.output.hasSuffix("pinproxy.yaml: the configuration can be used\n"))
        #expect(outcome.errors == "")
    }

    @Test func printsEveryProblem() throws {
        let bed = try CommandBed(configuration: "proxy:\n  lisen: x\nlog: {level: loud}\npins: pins.yaml\n")
        try bed.write("pins.yaml", "hosts:\n  - match: a.test\n    pinning: public-key\n")
        let outcome = try bed.configured("check")
        #expect(outcome.code == 78)
        #expect(outcome.output == "")
        #expect(
            outcome.errors == """
                \(bed.path("pinproxy.yaml")):2:3: error: unknown key "lisen" in "proxy"; did you mean "listen"?
                \(bed.path("pinproxy.yaml")):3:14: error: level: unknown value "loud"; write trace, debug, info, notice, warning, error or critical
                \(bed.path("pins.yaml")):3:14: error: pinning is public-key and there are no pins; add pins, or write pinning: none

                """)
    }

    @Test func printsWarningsAndIsContent() throws {
        let bed = try CommandBed(configuration: "pins: pins.yaml\n")
        try bed.write("pins.yaml", "hosts: [{match: a.test, validates_domain_name: false}]\n")
        let outcome = try bed.configured("check")
        #expect(outcome.code == 0)
        #expect(outcome.output.hasSuffix("the configuration can be used, 1 warning\n"))
        #expect(outcome.errors.contains("pins.yaml:1:48: warning: insecure: "))
    }

    @Test(arguments: ["check", "run", "env", "ca"]) func saysThatThereIsNoConfiguration(_ command: String) throws {
        let outcome = try CommandBed().run(command, "--config", "nowhere.yaml")
        #expect(outcome.code == 78)
        #expect(outcome.errors == "nowhere.yaml: error: can't be read: No such file or directory\n")
    }
}
