extension Section {
    /// A `listen` key: an address and port or a list of them, `systemd` for the sockets that it hands over.
    func listen(default address: ListenAddress) -> ListenSettings {
        guard let values = list("listen") else { return ListenSettings(addresses: [address]) }
        var settings = ListenSettings(addresses: [])
        for value in values {
            if case .scalar("systemd") = value.content {
                settings.takesInherited = true
                continue
            }
            guard let address = scalar(value, "listen", Form(read: ListenAddress.parse)) else { continue }
            if address.port != 0, settings.addresses.contains(address) {
                error(value, "listen: \(address) is written twice")
            }
            settings.addresses.append(address)
        }
        if values.isEmpty, let value = value("listen") {
            error(value, "listen: the list is empty; write an address, or systemd")
        }
        return settings
    }
}
