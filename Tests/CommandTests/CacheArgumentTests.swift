import Testing

/// `pinproxy cache` without a proxy, and with bad arguments. No error repeats a query or a password.
@Suite(.serialized) struct CacheArgumentTests {
    private let bed: CommandBed

    init() throws { bed = try CommandBed() }

    @Test(arguments: [
        (["show", "a.test/x?token=1"], "\"a.test/x?***\" has no scheme: write https://… in front"),
        (["show", "https://a.test/x?token=1#part"], "\"https://a.test/x?***\" has a fragment (#…)"),
        (["show", "ftp://a.test/x"], "has the scheme \"ftp\"; responses are stored of http and https"),
        (["show", "https://ada:token@a.test/"], "\"https://***:***@a.test/\" has user information"),
        (["show", "https:///x"], "is a URL without a host"),
        (["show", "https://a.test:0x50/"], "names no usable host"), (["show"], "Missing expected argument '<url>'"),
        (["purge"], "say what to remove: a host (example.com), a URL (https://example.com/file), or --all"),
        (["purge", "a.test", "--all"], "--all is everything"),
        (["purge", "a.test/x?token=1"], "\"a.test/x?***\" is neither a host nor a URL"),
        (["purge", "*.a.test"], "\"*.a.test\" is a pattern: name one host"), (["purge", "a..test"], "a..test"),
        (["purge", "https://a.test/#x"], "has a fragment"),
    ])
    func whatCantBeUsedIsSaid(arguments: [String], error: String) throws {
        let outcome = try bed.configured("cache", arguments[0], rest: Array(arguments.dropFirst()))
        #expect(outcome.code == 2 && outcome.output.isEmpty, "\(outcome)")
        #expect(outcome.errors.contains(error), "\(outcome)")
        #expect(!outcome.errors.contains("token"), "\(outcome)")
    }

    @Test(arguments: [
        ["summary"], ["show", "https://a.test/x"], ["purge", "a.test"], ["purge", "[::1]:8080"], ["purge", "::1"],
        ["purge", "https://a.test"], ["purge", "--all"], ["purge", "bücher.test", "--json"],
    ])
    func withoutAProxyNothingIsAsked(arguments: [String]) throws {
        let outcome = try bed.configured("cache", arguments[0], rest: Array(arguments.dropFirst()))
        #expect(outcome.code == 1 && outcome.output.isEmpty, "\(outcome)")
        #expect(outcome.errors.contains("no proxy is running with the state directory"), "\(outcome)")
    }
}
