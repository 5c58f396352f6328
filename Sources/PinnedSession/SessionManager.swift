import PinproxyEventLoop
public import PinproxySerialization
import PinproxySession
import Synchronization

/// Makes requests, and keeps their connections: AFURLSessionManager and AFHTTPSessionManager for Swift programs, with
/// the security policy of AFSecurityPolicy for each host.
///
/// ```swift
/// let session = try SessionManager(configuration: configuration)
/// let (body, response) = try await session.data(for: HTTPRequest("https://api.example.com/v1/status"))
/// ```
///
/// Thread-safe. Each has its own thread, which never blocks, and its own connections. When it is released, its tasks
/// are cancelled and the thread ends.
///
/// **What it guarantees.** A server's chain is verified and its pins are matched before the first byte of a request is
/// sent, also after redirects; pins are matched only against the chain that verification built. Credentials only go to
/// their configured hosts. A body that ends early is an error, never a short body.
public final class SessionManager: Sendable {
    let thread: LoopThread<SessionCore>
    private let lastID = Atomic<UInt64>(0)
    private let longestBody: Int

    /// Starts its thread and blocks to read the trust anchors.
    /// - Throws: ``SessionError/configuration(_:)`` for a wrong configuration.
    public init(
        configuration: SessionConfiguration = SessionConfiguration(), hooks: SessionHooks = SessionHooks()
    ) throws(SessionError) {
        let routing = try SessionRouting(configuration)
        longestBody = routing.longestBody
        do {
            thread = try LoopThread.start("pinproxy.http", stackSize: 1 << 20) { loop in
                try SessionCore(loop: loop, routing: routing, hooks: hooks)
            }
        } catch {
            throw .system("\(error)")
        }
    }

    deinit { thread.perform { $0.invalidate() } }

    // MARK: One call each

    /// Makes a request and collects the response's body, up to ``SessionConfiguration/maximumBodyLength``. Any status
    /// is a response. Cancelled with the Swift task that waits.
    /// - Returns: the body as the server sent it, in its content codings.
    public func data(for request: HTTPRequest) async throws(SessionError) -> (body: [UInt8], response: HTTPResponse) {
        let result = try await dataTask(for: request).result()
        return (result.body, result.response)
    }

    /// Makes a request with another body, and collects the response's body. Cancelled with the Swift task that waits.
    public func upload(
        for request: HTTPRequest, from body: RequestBody
    ) async throws(SessionError) -> (body: [UInt8], response: HTTPResponse) {
        let result = try await uploadTask(for: request, from: body).result()
        return (result.body, result.response)
    }

    /// Makes a request, and writes the response's body to a file: first beside it (`.NAME.….part`), then moved over an
    /// existing one when it is whole and synced. On failure, or a status other than 2xx, nothing changes and nothing is
    /// left behind. Cancelled with the Swift task that waits.
    @discardableResult
    public func download(for request: HTTPRequest, to path: String) async throws(SessionError) -> HTTPResponse {
        try await downloadTask(for: request, to: path).result().response
    }

    /// Makes a request and a value of its response (AFURLResponseSerialization): judges status and content type,
    /// decodes (within ``SessionConfiguration/maximumBodyLength``), and parses.
    /// - Returns: nil for a body without a value, such as an empty one.
    public func value<Serializer: ResponseSerializer>(
        for request: HTTPRequest, by serializer: Serializer
    ) async throws(SessionError) -> (value: Serializer.Value?, response: HTTPResponse) {
        let (body, response) = try await data(for: request)
        return (try response.value(of: body, by: serializer, limit: longestBody), response)
    }

    // MARK: Tasks

    /// A suspended task that collects the response's body.
    public func dataTask(for request: HTTPRequest) -> SessionTask { task(for: request, .data) }

    /// A suspended task that sends another body.
    public func uploadTask(for request: HTTPRequest, from body: RequestBody) -> SessionTask {
        var request = request
        request.body = body
        return task(for: request, .data)
    }

    /// A suspended task that downloads to a file; see ``download(for:to:)``.
    public func downloadTask(for request: HTTPRequest, to path: String) -> SessionTask {
        task(for: request, .download(to: path))
    }

    private func task(for request: HTTPRequest, _ purpose: SessionTask.Purpose) -> SessionTask {
        let id = lastID.wrappingAdd(1, ordering: .relaxed).newValue
        return SessionTask(id: id, request: request, purpose: purpose, runner: thread)
    }

    // MARK: The end

    /// Cancels all tasks and ends the session (`invalidateAndCancel`). Tasks fail with ``SessionError/invalidated``.
    public func invalidate() { thread.perform { $0.invalidate() } }

    /// Ends the session after the running tasks (`finishTasksAndInvalidate`).
    public func finishTasksAndInvalidate() { thread.perform { $0.finishAndInvalidate() } }
}

extension HTTPResponse {
    fileprivate func value<Serializer: ResponseSerializer>(
        of body: [UInt8], by serializer: Serializer, limit: Int
    ) throws(SessionError) -> Serializer.Value? {
        let head = PinproxySerialization.ResponseHead(
            status: status, contentType: self["Content-Type"].map { ContentType($0) },
            contentEncoding: self["Content-Encoding"], body: body.isEmpty ? .none : .length(body.count))
        do throws(ResponseSerializationError) {
            try serializer.validate(head, bodyIsEmpty: body.isEmpty)
        } catch {
            throw .unacceptable(error)
        }
        let plain: [UInt8]
        do throws(ContentDecodingError) {
            var decoder = try ContentDecoder(
                contentEncoding: head.contentEncoding, limits: ContentDecoder.Limits(length: limit))
            try decoder.push(body)
            plain = try decoder.finish()
        } catch {
            throw .badResponse("the body can't be decoded: \(error)")
        }
        do throws(ResponseSerializationError) {
            return try serializer.value(of: plain, head: head)
        } catch {
            throw .unacceptable(error)
        }
    }
}
