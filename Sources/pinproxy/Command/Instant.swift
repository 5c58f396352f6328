internal import ArgumentParser
internal import Security
internal import TLS

/// An instant on the command line, e.g. after `--at`.
struct Instant: ExpressibleByArgument {
    let time: UnixTime

    init?(argument: String) {
        guard let time = DateText.parse(argument) else { return nil }
        self.time = time
    }
}
