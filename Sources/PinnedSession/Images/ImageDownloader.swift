public import PinproxySerialization
import Synchronization

/// Downloads images with a session: AFImageDownloader. Identical requests in flight are made once, a few at a time, and
/// images are kept in memory. The session's own cache (``SessionConfiguration/cache``) stores responses as HTTP allows.
///
/// ```swift
/// let images = ImageDownloader(session: session)
/// let image = try await images.image(for: HTTPRequest("https://example.com/photo.webp"))
/// ```
/// Thread-safe.
public final class ImageDownloader: Sendable {
    /// The order of waiting requests.
    public enum Order: Sendable, Hashable {
        /// The first that was made.
        case fifo
        /// The last that was made.
        case lifo
    }

    private final class Fetch {
        let key: ImageKey
        let request: HTTPRequest
        var receipts: [ImageReceipt] = []
        var hasBegun = false
        var task: Task<Void, Never>?

        init(_ key: ImageKey, _ request: HTTPRequest) {
            self.key = key
            self.request = request
        }
    }

    private struct State: ~Copyable {
        var fetches: [ImageKey: Fetch] = [:]
        /// In the order of their requests.
        var queue: [Fetch] = []
        var active = 0
    }

    /// The cache of downloaded images; nil: none is kept.
    public let cache: ImageCache?
    private let session: SessionManager
    private let serializer: LoadedImageSerializer
    private let order: Order
    private let maximumActive: Int
    private let state = Mutex(State())

    /// - Parameters:
    ///   - session: makes the requests.
    ///   - cache: see ``cache``.
    ///   - serializer: judges responses, and bounds images.
    ///   - order: of the downloads that wait.
    ///   - maximumActive: downloads at one time, at least one.
    public init(
        session: SessionManager, cache: ImageCache? = ImageCache(),
        serializer: ImageResponseSerializer = ImageResponseSerializer(), order: Order = .fifo, maximumActive: Int = 4
    ) {
        self.session = session
        self.cache = cache
        self.serializer = LoadedImageSerializer(images: serializer)
        self.order = order
        self.maximumActive = max(maximumActive, 1)
    }

    /// Downloads an image, unless it is in memory. Cancelling the waiting Swift task cancels it.
    public func image(for request: HTTPRequest) async throws(SessionError) -> LoadedImage {
        try await download(request).image()
    }

    /// Begins a download, or joins one of the same request. Releasing the receipt doesn't cancel it.
    @discardableResult
    public func download(_ request: HTTPRequest) -> ImageReceipt {
        let key = ImageKey(request)
        let receipt = ImageReceipt(request) { [weak self] in self?.cancel($0, key) }
        guard request.method.description == "GET", request.body.isEmpty else {
            receipt.complete(.failure(.invalidRequest("\(request): an image is fetched by GET, without a body")))
            return receipt
        }
        if let image = cache?.image(for: key) {
            receipt.complete(.success(image))
            return receipt
        }
        state.withLock { state in
            if let fetch = state.fetches[key] { return fetch.receipts.append(receipt) }
            let fetch = Fetch(key, request)
            fetch.receipts = [receipt]
            state.fetches[key] = fetch
            state.queue.append(fetch)
            beginNext(&state)
        }
        return receipt
    }

    private func beginNext(_ state: inout State) {
        while state.active < maximumActive, !state.queue.isEmpty {
            let fetch = order == .fifo ? state.queue.removeFirst() : state.queue.removeLast()
            state.active += 1
            fetch.hasBegun = true
            let (key, request) = (fetch.key, fetch.request)
            // Strong until the download has ended, which the session bounds.
            fetch.task = Task { await self.run(request, key) }
        }
    }

    private func run(_ request: HTTPRequest, _ key: ImageKey) async {
        let outcome: Result<LoadedImage, SessionError>
        do throws(SessionError) {
            let image = try await session.value(for: request, by: serializer).value
            outcome = image.map { .success($0) } ?? .failure(.undecodable("\(request): the response has no body"))
        } catch {
            outcome = .failure(error)
        }
        if case .success(let image) = outcome { cache?.store(image, for: key) }
        let isCancelled = Task.isCancelled
        let receipts = state.withLock { state -> [ImageReceipt] in
            state.active -= 1
            // A cancelled fetch was removed already; the key may belong to another one now.
            let fetch = isCancelled ? nil : state.fetches.removeValue(forKey: key)
            beginNext(&state)
            return fetch?.receipts ?? []
        }
        for receipt in receipts { receipt.complete(outcome) }
    }

    /// The last receipt takes its download along.
    private func cancel(_ receipt: ImageReceipt, _ key: ImageKey) {
        state.withLock { state in
            guard let fetch = state.fetches[key] else { return }
            fetch.receipts.removeAll { $0 === receipt }
            guard fetch.receipts.isEmpty else { return }
            state.fetches[key] = nil
            state.queue.removeAll { $0 === fetch }
            fetch.task?.cancel()
        }
    }
}

/// A request for an image: AFImageDownloadReceipt. Others may wait for the same download.
public final class ImageReceipt: Sendable {
    typealias Outcome = Result<LoadedImage, SessionError>

    private struct State {
        var outcome: Outcome?
        var waiting: [CheckedContinuation<Outcome, Never>] = []
    }

    /// The request.
    public let request: HTTPRequest
    private let state = Mutex(State())
    private let cancelled: @Sendable (ImageReceipt) -> Void

    init(_ request: HTTPRequest, cancelled: @escaping @Sendable (ImageReceipt) -> Void) {
        self.request = request
        self.cancelled = cancelled
    }

    /// Waits for the image. Cancelling the waiting Swift task cancels the receipt.
    public func image() async throws(SessionError) -> LoadedImage {
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let known = state.withLock { state -> Outcome? in
                    if state.outcome == nil { state.waiting.append(continuation) }
                    return state.outcome
                }
                if let known { continuation.resume(returning: known) }
            }
        } onCancel: {
            cancel()
        }
        return try outcome.get()
    }

    /// Ends the receipt with ``SessionError/cancelled``, unless it has completed. The download ends with its last
    /// receipt.
    public func cancel() {
        if complete(.failure(.cancelled)) { cancelled(self) }
    }

    /// Only the first outcome counts; false: it isn't this one.
    @discardableResult
    func complete(_ outcome: Outcome) -> Bool {
        let waiting = state.withLock { state -> [CheckedContinuation<Outcome, Never>]? in
            guard state.outcome == nil else { return nil }
            state.outcome = outcome
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting ?? [] { continuation.resume(returning: outcome) }
        return waiting != nil
    }
}
