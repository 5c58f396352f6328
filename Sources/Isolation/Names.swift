package import PinproxyEventLoop

package enum NameAnswer: Sendable, Equatable {
    /// Empty: the name exists without addresses.
    case addresses([IPAddress])
    case unknown
    /// The proxy refuses the host, and doesn't look up its addresses.
    case refused
    /// The proxy couldn't be asked, or its name servers couldn't.
    case failed(String)
}

/// The names of the command's network, by the proxy's resolver. An address stays its name's for this run: the proxy
/// connects to one that the name has then.
final class Names {
    /// Asks the proxy. Answers once, on the loop, perhaps before it returns.
    typealias Ask = (_ name: String, _ answered: @escaping (NameAnswer) -> Void) -> Void

    /// The most remembered names; the oldest is evicted.
    static let limit = 4096
    /// Most addresses of each name; further ones are evicted likewise.
    static let addressLimit = 64

    private let ask: Ask
    private var waiting: [String: [(NameAnswer) -> Void]] = [:]
    private var known: [String: [IPAddress]] = [:]
    private var order: [String] = []

    init(_ ask: @escaping Ask) { self.ask = ask }

    /// Looks up exactly this name, without a search list.
    func addresses(of name: String, _ answered: @escaping (NameAnswer) -> Void) {
        let key = name.lowercased()
        find(key + ".") { [weak self] answer in
            let answer = if case .refused = answer { NameAnswer.addresses([Self.placeholder]) } else { answer }
            if case .addresses(let addresses) = answer { self?.remember(addresses, of: key) }
            answered(answer)
        }
    }

    /// A refused host's address, so that the program asks for it and gets the reason (dummy address of RFC 7600).
    static let placeholder = IPAddress(words: (UInt32(0xC000_0008).bigEndian, 0, 0, 0), isIPv6: false)

    enum Verdict: Equatable {
        case isOfName
        /// The name has others: these.
        case isNot([IPAddress])
        case cannotTell(String)
    }

    /// Whether the address is one that the host, a name or an address, has.
    func check(_ address: IPAddress, isOf host: String, _ judged: @escaping (Verdict) -> Void) {
        if let own = IPAddress(host) { return judged(own == address ? .isOfName : .isNot([own])) }
        let key = host.lowercased()
        if known[key]?.contains(address) == true { return judged(.isOfName) }
        find(key) { answer in
            switch answer {
            case .addresses(let addresses): judged(addresses.contains(address) ? .isOfName : .isNot(addresses))
            case .unknown: judged(.isNot([]))
            // The proxy will say why, wherever the program believes the host to be.
            case .refused: judged(.isOfName)
            case .failed(let cause): judged(.cannotTell(cause))
            }
        }
    }

    /// A name that is being asked for isn't asked for again.
    private func find(_ name: String, _ answered: @escaping (NameAnswer) -> Void) {
        if waiting[name] != nil {
            waiting[name]?.append(answered)
            return
        }
        waiting[name] = [answered]
        ask(name) { [weak self] answer in
            for answered in self?.waiting.removeValue(forKey: name) ?? [] { answered(answer) }
        }
    }

    private func remember(_ addresses: [IPAddress], of name: String) {
        guard !addresses.isEmpty else { return }
        if known[name] == nil {
            if order.count >= Self.limit { known[order.removeFirst()] = nil }
            order.append(name)
        }
        let before = (known[name] ?? []).filter { !addresses.contains($0) }
        known[name] = (before + addresses).suffix(Self.addressLimit)
    }
}
