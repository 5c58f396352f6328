// One idea with ClientTable.swift: a part of that table.

extension ClientProgram {
    /// Programs that fetch packages, modules and images from their own registries.
    static let registries = [
        ClientProgram(
            name: "go", package: "golang-go", version: "go version",
            call: """
                GO111MODULE=on GOPROXY="$SITE/go" GONOSUMDB='*' GOTOOLCHAIN=local go list -m -versions \
                pinproxy.test/test
                """,
            settings: "go env -changed GOPROXY GONOPROXY GOINSECURE 2>/dev/null || :"),
        ClientProgram(
            name: "gem", package: "ruby", version: "command -v gem >/dev/null; ruby -e 'puts Gem::VERSION'",
            call: #"gem list --remote --clear-sources --source "$SITE/gem/" pinproxy-test"#,
            settings: settings(":?(http_proxy|ssl_ca_cert|ssl_verify_mode)", in: "~/.gemrc /etc/gemrc")),
        ClientProgram(
            name: "mvn", package: "maven", version: mavenVersion,
            call: reaching(
                "building the effective model",
                """
                { printf '<settings><mirrors><mirror><id>m</id><mirrorOf>*</mirrorOf>'
                  printf '<url>%s/maven</url></mirror></mirrors></settings>' "$SITE"; } > settings.xml
                MAVEN_OPTS="$MAVEN_OPTS \(quickStart)" mvn -B -q -s settings.xml \
                -Dmaven.repo.local="$PWD/repository" org.pinproxy:test:1.0:run
                """),
            settings: mavenProxies),
        ClientProgram(
            name: "yarn", package: "yarnpkg", version: "\(yarn); \"$yarn\" --version",
            // It exits with 0 even after a failure.
            call: yarn + "; "
                + reaching(
                    "1.0.0", #""$yarn" info --registry "$SITE/npm/" --network-timeout 3000 pinproxy-test version"#),
            settings: settings("(https?-)?proxy|cafile|strict-ssl", in: "~/.yarnrc ~/.npmrc")),
        ClientProgram(
            name: "skopeo", package: "skopeo", version: "skopeo --version",
            call: #"skopeo inspect --raw "docker://$HOST:$PORT/pinproxy/test:latest""#),
    ]

    /// Debian's settings.xml has an example within a comment.
    private static let mavenProxies = #"""
        for file in ~/.m2/settings.xml /etc/maven/settings.xml; do
            [ -r "$file" ] && awk '{
                rest = $0; kept = ""
                while (rest != "") {
                    mark = inside ? "-->" : "<!--"
                    end = index(rest, mark)
                    if (!inside) kept = kept (end ? substr(rest, 1, end - 1) : rest)
                    if (end) inside = !inside
                    rest = end ? substr(rest, end + length(mark)) : ""
                }
                if (kept ~ /<proxy>/) print FILENAME ":" FNR ":" kept
            }' "$file"
        done; :
        """#

    /// The version of its library, without starting a JVM.
    private static let mavenVersion = """
        command -v java >/dev/null; mvn=$(readlink -f "$(command -v mvn)")
        for core in "${mvn%/bin/*}"/lib/maven-core-*.jar; do readlink -f "$core"; done | grep '[0-9][.][0-9]' || \
        MAVEN_OPTS="\(quickStart)" mvn --version
        """

    /// As Debian calls it, too.
    private static let yarn = "yarn=$(command -v yarn || command -v yarnpkg)"
}
