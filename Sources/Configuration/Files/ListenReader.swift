internal import Session

extension Section {
    /// The key `listen` of the proxy's own port: an address, `unix:PATH`, `systemd`, a mapping with `address` and
    /// `proxy_protocol`, or a list of these.
    /// - Parameter file: what a relative path is relative to.
    func listen(default address: ListenAddress, relativeTo file: String) -> ListenSettings {
        guard let written = value("listen") else { return ListenSettings(addresses: [address]) }
        let isOne = if case .mapping = written.content { true } else { false }
        guard let values = isOne ? [written] : list("listen") else { return ListenSettings(addresses: [address]) }
        var settings = ListenSettings(addresses: [])
        for value in values {
            switch value.content {
            case .scalar("systemd"): settings.takesInherited = true
            case .mapping: listenWithHeader(value, &settings)
            default:
                let form = Form { ListenPlace.parse($0, relativeTo: file) }
                guard let place = scalar(value, "listen", form) else { continue }
                add(place, value, to: &settings)
            }
        }
        if values.isEmpty { error(written, "listen: the list is empty; write an address, or systemd") }
        return settings
    }

    private func add(_ place: ListenPlace, _ value: YAMLValue, to settings: inout ListenSettings) {
        switch place {
        case .address(let address):
            if address.port != 0, settings.addresses.contains(address) { error(value, "listen: \(address) is written twice") }
            settings.addresses.append(address)
        case .unix(let path):
            if settings.paths.contains(path) { error(value, "listen: \(place) is written twice") }
            settings.paths.append(path)
        }
    }

    /// `{address: 192.0.2.1:7467, proxy_protocol: [192.0.2.10]}`
    private func listenWithHeader(_ value: YAMLValue, _ settings: inout ListenSettings) {
        let item = element("listen", value)
        defer { item.finish() }
        let senders = item.list("proxy_protocol")
        guard let written = item.value("address") else {
            return error(value, "listen: \"address\" is missing; write e.g. {address: 192.0.2.1:7467, proxy_protocol: [192.0.2.10]}")
        }
        guard let address = item.scalar(written, "address", Form(read: Self.headerAddress)) else { return }
        guard let senders else {
            return error(value, "listen: \"proxy_protocol\" is missing: whose PROXY headers are taken; or write the address alone")
        }
        if senders.isEmpty {
            error(value, "proxy_protocol: the list is empty, so nobody could connect; write the addresses of the load balancers")
        }
        let ranges = senders.compactMap { item.scalar($0, "proxy_protocol", Form(read: AddressRange.parse)) }
        for (sender, range) in zip(senders, ranges) where range.prefixLength == 0 {
            warning(
                sender, "proxy_protocol: everybody who can reach the port may claim to be any client; write the addresses of the load balancers")
        }
        add(.address(address), written, to: &settings)
        settings.proxyProtocol[address] = ranges
    }

    private static func headerAddress(_ text: String) -> Result<ListenAddress, Reason> {
        if text == "systemd" || text.hasPrefix("unix:") {
            return .failure(Reason("\"\(text)\" takes no PROXY headers; write an address and a port"))
        }
        return ListenAddress.parse(text).flatMap { address in
            address.port != 0 ? .success(address) : .failure(Reason("\"\(text)\": write a port, which the load balancer has to know"))
        }
    }
}
