/// A common program, and a script that makes one request with it.
///
/// Scripts are for `sh -e`, in an empty directory that is removed afterwards. `$SITE` is `https://HOST` or
/// `https://HOST:PORT`, `$HOST` and `$PORT` are its parts. The site has the pages of ``Clients/TestSite``.
struct ClientProgram: Sendable {
    let name: String
    /// Its source: a Debian package, unless it says PyPI.
    let package: String
    /// Prints its version; fails where it isn't installed.
    let version: String
    /// Makes a request by https; succeeds if the answer arrived.
    let call: String
    /// The remedy for a failure under `pinproxy exec`; nil: it should never fail.
    var remedy: Remedy?
    /// Prints the user's own settings that affect its proxy and its trust, one per line; nil: no known settings.
    var settings: String?

    struct Remedy: Sendable {
        /// The setting for users, in Markdown.
        let text: String
        /// The call with it; nil: trying it would change the user's files.
        var call: String?
    }

    /// Finds lines of the user's files with one of these settings. The names are extended regular expressions.
    static func settings(_ names: String, in files: String) -> String {
        "grep -HnE '^[[:space:]\"-]*(\(names))([[:space:]\"=:>]|$)' \(files) 2>/dev/null || :"
    }

    /// Variables of every call besides those of `pinproxy exec`: nothing is stored, asked or coloured.
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
