public import FoundationEssentials
public import PinproxySerialization
import PinproxySession

/// Why a task, or a session, failed. ``code`` is the number of NSURLErrorDomain, as in AFNetworking.
public enum SessionError: Error, Sendable {
    /// A wrong setting, and what to write instead.
    case configuration(String)
    /// The request can't be made or sent, usually because of its URL or a field.
    case invalidRequest(String)
    /// The serializer can't express the request's parameters.
    case unserializable(RequestSerializationError)
    /// `http://` to a host with pins.
    case plainToPinnedHost(String)
    /// Cancelled by the program, or with the waiting Swift task.
    case cancelled
    /// The session has ended: by ``SessionManager/invalidate()``, or its release.
    case invalidated
    /// The host's name could not be resolved.
    case cannotFindHost(String)
    /// The server's addresses can't be reached.
    case cannotConnect(String)
    /// This machine has no network.
    case noNetwork(String)
    /// A step took too long.
    case timedOut(String)
    /// The TLS handshake failed.
    case secureConnectionFailed(String)
    /// The policy doesn't trust the server's chain or name.
    case untrusted(String)
    /// No pin matched, and pins are enforced.
    case pinMismatch(PinMismatch)
    /// The server wants a client certificate.
    case clientCertificate(String)
    /// The configured proxy failed, or refused.
    case proxy(String)
    /// The connection was lost, and not resumed.
    case connectionLost(String)
    /// The response is not HTTP, or exceeds the limits.
    case badResponse(String)
    /// A redirect that can't or mustn't be followed.
    case redirect(String)
    /// The request's body could not be made (again), or changed while it was sent.
    case requestBody(String)
    /// The body is longer than ``SessionConfiguration/maximumBodyLength``.
    case bodyTooLong(limit: Int)
    /// All bodies together exceed ``SessionConfiguration/maximumBodiesLength``.
    case bodiesTooLong(limit: Int)
    /// The response's JSON doesn't fit the type that was asked for.
    case undecodable(String)
    /// A download's status isn't 2xx; an existing file is unchanged.
    case unacceptableStatus(HTTPResponse)
    /// The serializer rejects the response.
    case unacceptable(ResponseSerializationError)
    /// A download's file can't be written; an existing file is unchanged.
    case file(path: String, String)
    /// Another local failure.
    case system(String)

    /// The number of NSURLErrorDomain; -1 without one.
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
        // AFNetworking cancels the challenge, and can't tell a mismatch from a cancelled task (-999).
        case .untrusted, .pinMismatch: -1202
        case .clientCertificate: -1206
        case .connectionLost: -1005
        case .badResponse, .unacceptableStatus: -1011
        case .redirect: -1007
        case .requestBody: -1021
        case .bodyTooLong, .bodiesTooLong: -1103
        case .unserializable(let error): error.code.rawValue
        case .unacceptable(let error): error.code.rawValue
        case .undecodable: -1016
        case .file: -3003
        case .system: -1
        }
    }
}

extension SessionError: CustomStringConvertible {
    /// What failed and, if known, what to do. Never a secret: URLs have no query.
    public var description: String {
        switch self {
        case .configuration(let text), .invalidRequest(let text), .cannotFindHost(let text), .cannotConnect(let text),
            .timedOut(let text), .secureConnectionFailed(let text), .untrusted(let text), .clientCertificate(let text),
            .proxy(let text), .connectionLost(let text), .badResponse(let text), .redirect(let text),
            .requestBody(let text), .undecodable(let text), .system(let text):
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
        case .unserializable(let error): error.description
        case .unacceptable(let error): error.description
        case .file(let path, let cause): "\(path): \(cause)"
        }
    }
}

extension SessionError: LocalizedError {
    /// The description.
    public var errorDescription: String? { description }
}

extension SessionError {
    init(_ error: InvalidValue) { self = .invalidRequest(error.description) }
}
