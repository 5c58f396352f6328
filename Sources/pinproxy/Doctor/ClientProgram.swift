/// A program that people run, and how it is asked for something once.
///
/// Scripts are for `sh -e`, in an empty directory that is thrown away. `$SITE` is `https://HOST` or
/// `https://HOST:PORT`, `$HOST` and `$PORT` are its parts. The site has the pages of ``Clients/TestSite``.
struct ClientProgram: Sendable {
    let name: String
    /// Where it comes from: a package of Debian, unless it says PyPI.
    let package: String
    /// Prints its version; fails where it isn't installed.
    let version: String
    /// Asks for something by https; succeeds if the answer came.
    let call: String
    /// What helps where that fails under `pinproxy exec`; nil: nothing should have to.
    var remedy: Remedy?
    /// Prints the user's own settings that decide about its proxy and its trust, one a line; nil: none are known.
    var settings: String?

    struct Remedy: Sendable {
        /// What to set or to write, for people, in Markdown.
        let text: String
        /// The call with it; nil: it can't be tried without changing what is the user's.
        var call: String?
    }

    /// Lines of the user's files in which one of these settings is made: extended regular expressions.
    static func settings(_ names: String, in files: String) -> String {
        "grep -HnE '^[[:space:]\"-]*(\(names))([[:space:]\"=:>]|$)' \(files) 2>/dev/null || :"
    }

    /// What every call gets besides the variables of `pinproxy exec`: nothing is kept, asked or coloured.
    static func environment(in directory: String) -> [String: String] {
        [
            "TMPDIR": directory, "XDG_CACHE_HOME": directory + "/cache", "npm_config_cache": directory + "/cache",
            "npm_config_update_notifier": "false", "DENO_DIR": directory + "/cache", "DENO_NO_UPDATE_CHECK": "1",
            "UV_CACHE_DIR": directory + "/cache", "PIP_NO_CACHE_DIR": "1", "COMPOSER_CACHE_DIR": "/dev/null",
            "COMPOSER_ALLOW_SUPERUSER": "1", "GIT_TERMINAL_PROMPT": "0", "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "1", "NO_COLOR": "1", "TERM": "dumb", "LC_ALL": "C.UTF-8", "LANGUAGE": "",
            "GOPATH": directory + "/go", "GOFLAGS": "-modcacherw", "YARN_CACHE_FOLDER": directory + "/cache",
        ]
    }
}
