import CPinproxyOpenSSL
import CPinproxyShims

/// Settings of accepted connections, shared by all threads.
package final class TLSServerContext: Sendable {
    package struct Options: Sendable {
        /// Anything below TLS 1.2 is raised to it.
        package var versions = TLSVersion.tls12...TLSVersion.tls13
        /// Best first. A client that offers none of these gets no_application_protocol (RFC 7301 section 3.2).
        package var applicationProtocols = http1
        /// The identity of connections without their own.
        package var identity: Identity?
        package var sessionLifetime: Int64 = 2 * 3600
        /// Monotonic seconds, for the age of ticket keys.
        package var clock: @Sendable () -> Int64 = { monotonicSeconds() }

        /// `http/1.0` is for `curl --http1.0`.
        package static let http1 = ["http/1.1", "http/1.0"]

        package init() {}
    }

    let handle: ContextHandle
    let applicationProtocols: ApplicationProtocols
    let tickets: TicketKeys
    let hasIdentity: Bool

    package init(options: Options = Options()) throws(TLSError) {
        handle = try ContextHandle(TLS_server_method(), versions: options.versions)
        applicationProtocols = try ApplicationProtocols(options.applicationProtocols)
        tickets = try TicketKeys(lifetime: options.sessionLifetime, clock: options.clock)
        hasIdentity = options.identity != nil
        let context = handle.pointer
        if let identity = options.identity { try handle.use(identity) }
        SSL_CTX_set_options(context, shim_SSL_OP_CIPHER_SERVER_PREFERENCE)
        // Tickets carry the session: no cache.
        shim_SSL_CTX_set_session_cache_mode(context, Int(SSL_SESS_CACHE_OFF))
        SSL_CTX_set_timeout(context, Int(options.sessionLifetime))
        // OpenSSL's default is two. Clients of a proxy keep their connection; resuming renews the ticket.
        SSL_CTX_set_num_tickets(context, 1)
        _ = shim_SSL_CTX_set_ticket_key_callback(context) { connection, name, iv, cipher, mac, isNew in
            ConnectionState.ticketKey(connection, name: name, iv: iv, cipher: cipher, mac: mac, isNew: isNew)
        }
        SSL_CTX_set_alpn_select_cb(
            context,
            { connection, output, outputLength, offered, count, _ in
                ConnectionState.selectProtocol(
                    connection, offered: offered, count: count, output: output, outputLength: outputLength)
            }, nil)
        SSL_CTX_set_client_hello_cb(
            context, { connection, alert, _ in ConnectionState.receivedHello(connection, alert: alert) }, nil)
    }
}
