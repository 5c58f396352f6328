internal import PinproxyClients
internal import PinproxySession

extension Rehearsal.HTTPChoice {
    /// An origin that chooses none speaks HTTP/1.1.
    var spoken: HTTPProtocol { chosen ?? .http1 }

    /// The offered protocols and the origin's choice, in human-readable form.
    var account: String {
        let offer = offered.map(\.rawValue).joined(separator: " and ")
        guard let chosen else { return "\(spoken): the host chose nothing by ALPN; it was offered \(offer)" }
        let choice = "\(chosen), chosen by the host, which was offered \(offer)"
        return switch takesExtendedConnect {
        case true?: "\(choice); it takes WebSockets over HTTP/2"
        case false? where offered.contains(.http1): "\(choice); WebSockets go over HTTP/1.1"
        case false?: "\(choice); WebSockets can't reach it: it takes none over HTTP/2"
        case nil: choice
        }
    }
}
