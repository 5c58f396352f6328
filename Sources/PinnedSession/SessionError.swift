public import Serialization
import Session

/// Why a task, or a session, failed. ``code`` is the number that NSURLErrorDomain, and so AFNetworking, has for it.
public enum SessionError: Error, Sendable {
    /// A setting of the session is wrong; which, and what to write instead.
    case configuration(String)
    /// The request can't be sent as it is: its URL, mostly.
    case invalidRequest(String)
    /// `http://` to a host with pins: nothing could be compared with them.
    case plainToPinnedHost(String)
    /// The program, or the Swift task that waited, has cancelled it.
    case cancelled
    /// The session has ended: by ``SessionManager/invalidate()``, or because nobody held it any more.
    case invalidated
    /// The host's name has no address, or none could be found out.
    case cannotFindHost(String)
    /// The server's addresses can't be reached.
    case cannotConnect(String)
    /// This machine's network leads nowhere.
    case noNetwork(String)
    /// Which step took too long.
    case timedOut(String)
    /// The TLS handshake failed.
    case secureConnectionFailed(String)
    /// The server's chain, or its name, is not what the policy trusts.
    case untrusted(String)
    /// No pin matched, in a mode that enforces them.
    case pinMismatch(PinMismatch)
    /// The server wants a certificate of its client.
    case clientCertificate(String)
    /// The proxy of the configuration failed, or refused.
    case proxy(String)
    /// The connection broke off, and could not be continued.
    case connectionLost(String)
    /// What the server sent is not HTTP, or beyond the limits.
    case badResponse(String)
    /// A redirect can't, or may not, be followed.
    case redirect(String)
    /// The request's body could not be made, made again, or changed while it was sent.
    case requestBody(String)
    /// The body is longer than ``SessionConfiguration/maximumBodyLength``.
    case bodyTooLong(limit: Int)
    /// The bodies being collected are longer together than ``SessionConfiguration/maximumBodiesLength``.
    case bodiesTooLong(limit: Int)
    /// A download with a status other than 2xx; the file is left as it was.
    case unacceptableStatus(HTTPResponse)
    /// The response is not what the serializer accepts.
    case unacceptable(ResponseSerializationError)
    /// A download's file can't be written; the one that may have been there is left as it was.
    case file(path: String, String)
    /// Something else of this machine failed.
    case system(String)

    /// The code of NSURLErrorDomain.
    public var code: Int {
        switch self {
        case .configuration, .invalidRequest: -1000
        case .plainToPinnedHost: -1022
        case .cancelled, .invalidated: -999
        case .cannotFindHost: -1003
        case .cannotConnect, .proxy: -1004
        case .noNetwork: -1009
        case .timedOut: -1001
        case .secureConnectionFailed: -1200
        case .untrusted: -1202
        // What AFNetworking's "cancel the challenge" comes to.
        case .pinMismatch: -999
        case .clientCertificate: -1206
        case .connectionLost: -1005
        case .badResponse, .unacceptableStatus: -1011
        case .redirect: -1007
        case .requestBody: -1021
        case .bodyTooLong, .bodiesTooLong: -1103
        case .unacceptable(let error): error.code.rawValue
        case .file: -3003
        case .system: -1
        }
    }
}

extension SessionError: CustomStringConvertible {
    /// What failed and, where that is known, what to do. Never a secret: URLs come without their query.
    public var description: String {
        switch self {
        case .configuration(let text), .invalidRequest(let text), .cannotFindHost(let text), .cannotConnect(let text),
            .timedOut(let text), .secureConnectionFailed(let text), .untrusted(let text), .clientCertificate(let text),
            .proxy(let text), .connectionLost(let text), .badResponse(let text), .redirect(let text),
            .requestBody(let text), .system(let text):
            text
        case .noNetwork(let text): "the network can't be reached: \(text)"
        case .plainToPinnedHost(let host): "\(host) has pins, and http:// can't be pinned: write https://"
        case .cancelled: "cancelled"
        case .invalidated: "the session has ended"
        case .pinMismatch(let mismatch): mismatch.description
        case .bodyTooLong(let limit):
            "the body is longer than \(limit) bytes (maximumBodyLength); download it to a file"
        case .bodiesTooLong(let limit):
            "the bodies being collected are longer together than \(limit) bytes (maximumBodiesLength); "
                + "ask again, or download it to a file"
        case .unacceptableStatus(let response): "the server answered \(response.status)"
        case .unacceptable(let error): error.description
        case .file(let path, let cause): "\(path): \(cause)"
        }
    }
}
