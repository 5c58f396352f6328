import Foundation

/// lighttpd as an origin that asks for Digest (RFC 7616) of user "ann" with password "secret" below `/md5`, `/sha256`,
/// `/both` and `/userhash`, each with a file `hello`.
struct LighttpdOrigin: Sendable {
    let port: UInt16
    let process: ChildProcess

    init(in bed: TestBed, chain: ServedChain) async throws {
        let socket = try ListeningSocket()
        port = socket.port
        for folder in ["md5", "sha256", "both", "userhash"] {
            try bed.file("lighttpd/documents/\(folder)/hello", "hello\n", mode: 0o644)
        }
        let users = try bed.file("lighttpd/users", "ann:secret\n")
        // SHA-256 of ann:hall:secret and of ann:hall.
        let hashed = try bed.file("lighttpd/hashed", "ann:hall:\(Self.secret):\(Self.user)\n")
        func digest(_ path: String, _ algorithm: String, _ more: String = "") -> String {
            """
            "\(path)" => ("method" => "digest", "algorithm" => "\(algorithm)", "realm" => "hall", "require" => \
            "valid-user"\(more))
            """
        }
        let configuration = try bed.file(
            "lighttpd/lighttpd.conf",
            """
            server.modules = ("mod_auth", "mod_authn_file", "mod_openssl")
            server.document-root = "\(bed.path("lighttpd/documents"))"
            server.bind = "127.0.0.1"
            server.port = \(socket.port)
            server.systemd-socket-activation = "enable"
            server.max-keep-alive-requests = 10000
            mimetype.assign = ("" => "text/plain")
            ssl.engine = "enable"
            ssl.pemfile = "\(try bed.file("lighttpd/chain.pem", chain.pem))"
            ssl.privkey = "\(try bed.file("lighttpd/key.pem", chain.keyPEM))"
            auth.backend = "plain"
            auth.backend.plain.userfile = "\(users)"
            auth.backend.htdigest.userfile = "\(hashed)"
            auth.require = (\(digest("/md5", "MD5")), \(digest("/sha256", "SHA-256")),
                \(digest("/both", "MD5|SHA-256")),
                \(digest("/userhash", "SHA-256", #", "userhash" => "enable""#)))
            $HTTP["url"] =~ "^/userhash/" { auth.backend = "htdigest" }

            """)
        process = try await bed.start(
            ["/bin/sh", "-c", "LISTEN_FDS=1 LISTEN_PID=$$ exec /usr/sbin/lighttpd -D -f \"$0\"", configuration],
            inherited: [socket.descriptor], mergingErrors: true)
    }

    private static let secret = "c30d94dfd8dff79f9b0619a7a2bfaf72d8e190b655f327d6c9275ced3cba45a9"
    private static let user = "31342afd2b750b2af74c72f5a2b38c03bc29fddfccac35a4708d14a4ca5ddf92"
}
