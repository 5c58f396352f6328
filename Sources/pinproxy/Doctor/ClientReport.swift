internal import Glibc

struct ClientReport: Codable, Equatable {
    /// The part of a refusal that the client shows.
    enum Shown: String, Codable {
        /// The reason.
        case reason
        /// The status, 502.
        case status
        case nothing
    }

    let client: String
    let version: String
    let takesProxy: Bool
    /// Nil: unknown, as no request came through.
    let trustsAuthority: Bool?
    /// The right pin's host was reached, and the wrong pin's wasn't.
    let works: Bool
    let shows: Shown
    let execTells: Bool
    /// `pinproxy exec --transparent` makes it work; nil: that wasn't tried, or can't be here.
    let transparent: Bool?
    /// The user's own settings that may keep it from working, with their places.
    let settings: [String]
    /// Settings, in Markdown; nil: none besides those of `pinproxy exec`.
    let set: String?
    /// With it, it works; nil: that can't be tried here.
    let worksThen: Bool?
    /// Its most telling line about the failure.
    let said: String
}

/// One call, and what the proxy saw of it.
struct ClientCall {
    let succeeded: Bool
    let output: String
    let requests: Int
    /// Within TLS with the proxy.
    let inside: Int
    let isRefused: Bool

    var shown: ClientReport.Shown {
        if output.contains("pinning failure") { return .reason }
        // Not a part of a port or of a process's number.
        return output.contains(/(?:^|[^0-9:])502(?:[^0-9]|$)/) || output.contains("Bad Gateway") ? .status : .nothing
    }

    var said: String {
        // A line of Python's traceback says where, and not what.
        let lines = output.split(whereSeparator: \.isNewline).filter {
            $0.contains { !$0.isWhitespace } && $0.prefixMatch(of: /\s*File "[^"]*", line \d/) == nil
        }
        let signs = [
            /pinning failure/, /(?:^|[^0-9:])502(?:[^0-9]|$)/, /(?i)certificate|resolve|not known|ENOTFOUND/,
            /(?i)error|fail|can't/,
        ]
        let line = signs.lazy.compactMap { sign in lines.last { $0.contains(sign) } }.first ?? lines.last ?? ""
        return String(line.drop(while: \.isWhitespace)).printable
    }
}

extension ClientReport {
    /// - Parameters:
    ///   - helped: whether it works with the program's remedy; nil: that wasn't tried.
    ///   - transparent: whether it works under `pinproxy exec --transparent`; the same.
    init(
        _ program: ClientProgram, version: String, right: ClientCall, wrong: ClientCall, helped: Bool?,
        transparent: Bool?, settings: [String]
    ) {
        client = program.name
        self.version = version
        works = right.succeeded && !wrong.succeeded
        let isSeen = right.succeeded || right.requests + wrong.requests > 0
        takesProxy = isSeen
        trustsAuthority = right.succeeded || right.inside > 0 ? true : isSeen ? false : nil
        shows = wrong.shown
        execTells = wrong.isRefused
        self.transparent = transparent
        self.settings = settings
        let ways = [transparent == true ? "`pinproxy exec --transparent`" : nil, program.remedy?.text].compactMap(
            \.self)
        set = works || ways.isEmpty ? nil : ways.joined(separator: ", or ")
        worksThen = works ? nil : transparent == true ? true : helped
        said = works ? wrong.said : right.succeeded ? wrong.said : right.said
    }
}
