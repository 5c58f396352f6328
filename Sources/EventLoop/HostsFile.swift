internal import CPinproxyCares
internal import Glibc

/// The hosts file and search list, by a separate c-ares channel, so that both families come from one read of the file,
/// unmixed with DNS.
struct HostsFile: ~Copyable {
    private var channel: ares_channel?

    init() throws(ResolutionError) {
        var options = ares_options()
        let status = "f".withCString { lookups in
            options.lookups = UnsafeMutablePointer(mutating: lookups)
            return ares_init_options(&channel, &options, ARES_OPT_LOOKUPS)
        }
        guard status == shim_ARES_SUCCESS else { throw ResolutionError(status: status, name: "resolver") }
    }

    deinit {
        if let channel { ares_destroy(channel) }
    }

    /// Both families' addresses, sorted by RFC 6724; none if the file, reread each time, doesn't name the host.
    func addresses(of name: String) -> [IPAddress] {
        final class Answer { var addresses: [IPAddress] = [] }
        let answer = Answer()
        var hints = ares_addrinfo_hints()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        // The variable CARES_HOSTS may name another hosts file. Without it c-ares 1.34 reads no file at all if asked
        // for that.
        hints.ai_flags = getenv("CARES_HOSTS") == nil ? 0 : ARES_AI_ENVHOSTS
        // Without I/O the callback comes before the call returns.
        ares_getaddrinfo(
            channel, name, nil, &hints,
            { context, status, _, info in
                guard let context else { return }
                if status == shim_ARES_SUCCESS {
                    Unmanaged<Answer>.fromOpaque(context).takeUnretainedValue().addresses = AddressInfo.addresses(info)
                }
                ares_freeaddrinfo(info)
            }, Unmanaged.passUnretained(answer).toOpaque())
        return withExtendedLifetime(answer) { answer.addresses }
    }

    /// `name` and its search list, in the order of `ndots` (resolv.conf(5)). A final dot means `name` alone.
    func candidates(for name: String) -> [String] {
        if name.hasSuffix(".") { return [name] }
        let saved = UnsafeMutablePointer<shim_ares_options>.allocate(capacity: 1)
        defer { saved.deallocate() }
        guard shim_ares_save_options(channel, saved) == shim_ARES_SUCCESS else { return [name] }
        defer { shim_ares_destroy_options(saved) }
        let options = saved.pointee.known
        let domains = (0..<Int(max(options.ndomains, 0))).compactMap { index in
            options.domains[index].map { String(cString: $0) }
        }
        let longer = domains.filter { !$0.isEmpty && $0 != "." }.map { "\(name).\($0)" }
        let dots = name.utf8.count { $0 == UInt8(ascii: ".") }
        return dots >= max(options.ndots, 0) ? [name] + longer : longer + [name]
    }
}

enum AddressInfo {
    static func addresses(_ info: UnsafeMutablePointer<ares_addrinfo>?) -> [IPAddress] {
        var addresses: [IPAddress] = []
        var node = info?.pointee.nodes
        while let current = node {
            if let address = current.pointee.ai_addr.flatMap({ SocketAddress($0) })?.ip, !addresses.contains(address) {
                addresses.append(address)
            }
            node = current.pointee.ai_next
        }
        return addresses
    }

    /// Seconds: the shortest of all records, aliases included.
    static func timeToLive(of info: UnsafeMutablePointer<ares_addrinfo>?) -> Int {
        var shortest = CInt.max
        var node = info?.pointee.nodes
        while let current = node {
            shortest = min(shortest, current.pointee.ai_ttl)
            node = current.pointee.ai_next
        }
        var alias = info?.pointee.cnames
        while let current = alias {
            shortest = min(shortest, current.pointee.ttl)
            alias = current.pointee.next
        }
        return Int(shortest)
    }
}
