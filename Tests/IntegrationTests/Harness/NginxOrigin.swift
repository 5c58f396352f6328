import Foundation

/// nginx as an origin for any number of sites, each with a name and a chain.
struct NginxOrigin: Sendable {
    /// Where sites are served over TLS, chosen by SNI; the first site is what a client without SNI gets.
    let port: UInt16
    let ipv6Port: UInt16
    /// Plain HTTP, same content.
    let plainPort: UInt16
    let process: ChildProcess
    let documents: String

    struct Site: Sendable {
        var name: String
        var chain: ServedChain
        /// More lines for the `server` block.
        var directives: String = ""
    }

    init(
        in bed: TestBed, folder: String = "nginx", sites: [Site], locations: String = "",
        options: String = "", http2: Bool = false
    ) async throws {
        let secure = try ListeningSocket()
        let secure6 = try ListeningSocket(ipv6Port: bed.port())
        let plain = try ListeningSocket()
        (port, ipv6Port, plainPort) = (secure.port, secure6.port, plain.port)
        documents = bed.path("\(folder)/documents")
        try bed.file("\(folder)/documents/hello", "hello\n", mode: 0o644)
        var servers = ""
        let secured = http2 ? "ssl http2" : "ssl"
        for (index, site) in sites.enumerated() {
            let certificate = try bed.file("\(folder)/\(index).pem", site.chain.pem)
            let key = try bed.file("\(folder)/\(index).key", site.chain.keyPEM)
            servers += """
                server {
                    listen 127.0.0.1:\(port) \(secured); listen [::1]:\(ipv6Port) \(secured); listen \
                127.0.0.1:\(plainPort);
                    server_name \(site.name);
                    ssl_certificate \(certificate); ssl_certificate_key \(key);
                    \(site.directives)
                    \(locations)
                }

                """
        }
        let configuration = try bed.file(
            "\(folder)/nginx.conf",
            """
            daemon off; worker_processes 1; user \(NSUserName());
            pid \(bed.path(folder))/nginx.pid; error_log stderr warn;
            events { worker_connections 1024; }
            http {
                access_log off; types { text/html html; } default_type text/plain; root \(documents);
                client_body_temp_path \(bed.path(folder))/body; proxy_temp_path \(bed.path(folder))/proxy;
                fastcgi_temp_path \(bed.path(folder))/fastcgi; uwsgi_temp_path \(bed.path(folder))/uwsgi;
                scgi_temp_path \(bed.path(folder))/scgi;
                client_max_body_size 0; server_names_hash_bucket_size 512;
                ssl_protocols TLSv1.2 TLSv1.3; \
            \(options.contains("keepalive_requests") ? "" : "keepalive_requests 1000000;")
                \(options)
            \(servers)}
            """)
        // nginx takes over the sockets that NGINX names, as it does in an upgrade of itself.
        process = try await bed.start(
            ["/usr/sbin/nginx", "-p", bed.path(folder), "-c", configuration],
            environment: ["NGINX": "3;4;5;", "OPENSSL_CONF": try Self.laxConfiguration(in: bed)],
            inherited: [secure.descriptor, secure6.descriptor, plain.descriptor])
    }

    /// OpenSSL's defaults without Debian's lower bounds: an origin may be as weak as a test wants it.
    private static func laxConfiguration(in bed: TestBed) throws -> String {
        try bed.file(
            "lax.cnf",
            """
            openssl_conf = all
            [all]
            ssl_conf = tls
            [tls]
            system_default = weak
            [weak]
            MinProtocol = TLSv1
            CipherString = DEFAULT:@SECLEVEL=0

            """)
    }
}
