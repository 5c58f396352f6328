import ArgumentParser
import Testing

@testable import pinproxy

/// A command parsed without the others gives the same result as the whole tree.
@Suite struct CommandAloneTests {
    /// Parsed alone.
    @Test(arguments: [
        ["run"], ["run", "--config", "a.yaml"], ["check", "--state-directory=/s"],
        ["env", "--shell", "fish", "--unset"],
        ["exec", "true"], ["exec", "--", "true"], ["exec", "--", "--", "true"],
        ["exec", "--isolated", "sh", "-c", "x"],
        ["exec", "--no-trust", "--explain-refusals", "live", "--", "curl", "--help"], ["exec", "curl", "--version"],
        ["exec", "--config", "a b", "npm", "--config", "c", "help"], ["doctor", "--json", "curl"], ["status"],
        ["reload"],
        ["explain", "a.test:8443", "--path", "/x"], ["pin", "a.test"], ["lint", "--offline"], ["signer"],
    ]) func isTheSame(_ arguments: [String]) throws {
        let alone = try #require(Main.alone(arguments))
        let whole = try Pinproxy.parseAsRoot(arguments)
        #expect(type(of: alone) == type(of: whole))
        var (first, second) = ("", "")
        dump(alone, to: &first)
        dump(whole, to: &second)
        #expect(first == second)
    }

    /// Left to the whole tree: help, wrong usage, and commands of several words.
    @Test(arguments: [
        [], ["--help"], ["--version"], ["help"], ["help", "exec"], ["bogus"], ["run", "--help"], ["run", "--version"],
        ["run", "--bogus"], ["run", "surplus"], ["run", "help"], ["exec"], ["exec", "--"], ["exec", "--help"],
        ["exec", "-h"], ["env", "--shell", "bogus"],
        ["check", "--config"], ["check", "--generate-completion-script", "bash"],
        ["exec", "--generate-completion-script=fish"], ["doctor", "--timeout", "0"],
        ["--", "run"], ["ca"], ["ca", "help"], ["ca", "show"], ["ca", "rotate", "--bogus"], ["tasks"],
        ["tasks", "list"],
        ["---completion", "explain", "--", "positional@0", "1", "0", "a"],
    ]) func isLeftToTheWholeTree(_ arguments: [String]) {
        #expect(Main.alone(arguments) == nil)
    }
}
