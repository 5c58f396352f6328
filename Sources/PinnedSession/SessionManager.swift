public import FoundationEssentials
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
    private let thread: Mutex<LoopThread<SessionCore>>
    private let lastID = Atomic<UInt64>(0)
    private let routing: SessionRouting
    private let hooks: SessionHooks
    private let cookies: CookieStore?
    private let cache: ResponseCache

    /// Starts its thread and blocks to read the trust anchors.
    /// - Throws: ``SessionError/configuration(_:)`` for a wrong configuration.
    public init(
        configuration: SessionConfiguration = SessionConfiguration(), hooks: SessionHooks = SessionHooks()
    ) throws(SessionError) {
        routing = try SessionRouting(configuration)
        self.hooks = hooks
        cookies = configuration.cookies
        do {
            cache = try configuration.cache.open()
        } catch {
            throw .system("\(error)")
        }
        thread = Mutex(try Self.start(routing, hooks, cookies, cache))
    }

    private static func start(
        _ routing: SessionRouting, _ hooks: SessionHooks, _ cookies: CookieStore?, _ cache: ResponseCache
    ) throws(SessionError) -> LoopThread<SessionCore> {
        do {
            return try LoopThread.start("pinproxy.http", stackSize: 1 << 20) { loop in
                try SessionCore(loop: loop, routing: routing, hooks: hooks, cookies: cookies, cache: cache)
            }
        } catch {
            throw .system("\(error)")
        }
    }

    deinit {
        invalidate()
        cache.disk?.close()
    }

    var current: LoopThread<SessionCore> { thread.withLock { $0 } }

    // MARK: One call each

    /// Makes a request and collects the response's body, up to ``SessionConfiguration/maximumBodyLength``. Any status
    /// is a response. Cancelled with the Swift task that waits.
    /// - Returns: the body, without the content codings that the session asked for (``HTTPResponse/isDecoded``).
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

    /// Makes a request, and writes the response's body to the file of a file URL.
    @discardableResult
    public func download(for request: HTTPRequest, to file: URL) async throws(SessionError) -> HTTPResponse {
        try await download(for: request, to: try RequestBody.path(of: file))
    }

    /// Makes a request, and gives its response when that begins. The body is read as the program reads it; a program
    /// that doesn't read for ``SessionConfiguration/idleTimeout`` fails the task.
    public func bytes(
        for request: HTTPRequest
    ) async throws(SessionError) -> (body: ResponseBody, response: HTTPResponse) {
        let channel = BodyChannel()
        let task = task(for: request, .stream(channel))
        let reading = BodyReading(task, channel)
        let head = await withTaskCancellationHandler {
            task.resume()
            return await channel.head()
        } onCancel: {
            task.cancel()
        }
        return (ResponseBody(reading: reading), try head.get())
    }

    /// Makes a request and a value of its response (AFURLResponseSerialization): judges status and content type,
    /// decodes (within ``SessionConfiguration/maximumBodyLength``), and parses.
    /// - Returns: nil for a body without a value, such as an empty one.
    public func value<Serializer: ResponseSerializer>(
        for request: HTTPRequest, by serializer: Serializer
    ) async throws(SessionError) -> (value: Serializer.Value?, response: HTTPResponse) {
        let (body, response) = try await data(for: request)
        return (try response.value(of: body, by: serializer, limit: routing.longestBody), response)
    }

    /// Makes a request and decodes the JSON of its response. A status other than 2xx and another content type are
    /// errors.
    /// - Throws: ``SessionError/undecodable(_:)`` with the place, if the JSON doesn't fit the type.
    public func value<Value: Decodable>(
        for request: HTTPRequest, as type: Value.Type = Value.self, decoder: JSONDecoder = JSONDecoder()
    ) async throws(SessionError) -> (value: Value, response: HTTPResponse) {
        let (body, response) = try await data(for: request)
        return (try response.value(of: body, as: type, decoder: decoder, limit: routing.longestBody), response)
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

    /// A suspended task that downloads to a file, as `download(for:to:)` does.
    public func downloadTask(for request: HTTPRequest, to path: String) -> SessionTask {
        task(for: request, .download(to: path))
    }

    private func task(for request: HTTPRequest, _ purpose: SessionTask.Purpose) -> SessionTask {
        let id = lastID.wrappingAdd(1, ordering: .relaxed).newValue
        return SessionTask(id: id, request: request, purpose: purpose, runner: current)
    }

    // MARK: The end

    /// Cancels all tasks and ends the session (`invalidateAndCancel`). Tasks fail with ``SessionError/invalidated``.
    public func invalidate() { current.perform { $0.invalidate() } }

    /// Ends the session after the running tasks (`finishTasksAndInvalidate`).
    public func finishTasksAndInvalidate() { current.perform { $0.finishAndInvalidate() } }

    /// Ends the session as ``invalidate()`` does, and starts it again with new connections. Cookies and stored
    /// responses stay. It can be called after the session's end, too.
    public func reset() throws(SessionError) {
        let fresh = try Self.start(routing, hooks, cookies, cache)
        let old = thread.withLock { thread in
            defer { thread = fresh }
            return thread
        }
        old.perform { $0.invalidate() }
    }
}
