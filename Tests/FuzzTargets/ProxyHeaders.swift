import PinproxyClients

/// PROXY headers of load balancers.
enum ProxyHeaders {
    static func header(_ bytes: [UInt8]) {
        let whole = Result { () throws(ProxyHeader.Defect) in try ProxyHeader.parse(bytes) }
        if case .success(let header?) = whole {
            require(
                1...bytes.count ~= header.length && header.length <= ProxyHeader.longest, "a header is within its bytes"
            )
            let exact = try? ProxyHeader.parse(Array(bytes.prefix(header.length)))
            require(exact == header, "what follows a header doesn't change it")
        }
        if case .success(nil) = whole {
            require(bytes.count < ProxyHeader.longest, "a header that doesn't end is too long")
        }
        for cut in Set([1, 6, 12, 13, 16, bytes.count / 2, bytes.count - 1]) where 0..<bytes.count ~= cut {
            let early = Result { () throws(ProxyHeader.Defect) in try ProxyHeader.parse(Array(bytes.prefix(cut))) }
            if case .success(nil) = early { continue }
            require(early == whole, "more bytes change a header from \(early) to \(whole)")
        }
    }
}
