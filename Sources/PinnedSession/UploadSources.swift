import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySerialization
import PinproxySession

/// - Parameter completion: called once on the loop, perhaps before this returns.
func makeSource(
    of body: RequestBody, on loop: EventLoop, _ completion: @escaping (Result<any UploadSource, SessionError>) -> Void
) {
    switch body.content {
    case .none: completion(.success(BytesSource(nil)))
    case .bytes(let bytes): completion(.success(BytesSource(bytes)))
    case .stream(let length, let make): completion(.success(StreamSource(length: length, make: make, on: loop)))
    case .file(let path):
        openFiles(on: loop, completion) { () throws(RequestSerializationError) in try MultipartBody(file: path) }
    case .form(let form, let streams) where streams.isEmpty:
        openFiles(on: loop, completion) { () throws(RequestSerializationError) in try form.open() }
    case .form(let form, let streams):
        let opened: (Result<any UploadSource, SessionError>) -> Void = { made in
            completion(made.map { JoinedSource([$0] + generated(streams, of: form, on: loop)) })
        }
        openFiles(on: loop, opened) { () throws(RequestSerializationError) in try form.open(isWhole: false) }
    }
}

/// The generated parts of a form, and its end.
private func generated(
    _ streams: [StreamedPart], of form: MultipartForm, on loop: EventLoop
) -> [any UploadSource] {
    var sources: [any UploadSource] = []
    for (index, part) in streams.enumerated() {
        let isFirst = index == 0 && form.isEmpty
        sources.append(BytesSource(form.opening(of: part.name, fileName: part.fileName, part.type, isFirst: isFirst)))
        sources.append(StreamSource(length: part.length, make: part.make, on: loop))
    }
    return sources + [BytesSource(form.closing)]
}

private func openFiles(
    on loop: EventLoop, _ completion: @escaping (Result<any UploadSource, SessionError>) -> Void,
    _ open: @escaping @Sendable () throws(RequestSerializationError) -> MultipartBody
) {
    let queue: WorkQueue
    do throws(SystemError) {
        queue = try WorkQueue("uploads", isBackground: true)
    } catch {
        return completion(.failure(.requestBody("\(error)")))
    }
    let completion = LoopBound((loop, completion), on: loop)
    queue.async {
        let reader = Result { () throws(RequestSerializationError) in UploadReader(try open(), on: queue) }
        completion.post { loop, completion in
            completion(reader.map { FileSource($0, on: loop) }.mapError { .requestBody($0.description) })
        }
    }
}

extension UploadSource {
    /// POST, PUT and PATCH without a body have a Content-Length of 0 (RFC 9110 section 8.6).
    func bodyLength(for method: MethodName) -> BodyLength {
        if isEmpty { return ["POST", "PUT", "PATCH"].contains(method.description) ? .known(0) : .none }
        return length.map { .known(UInt64($0)) } ?? .unknown
    }
}

final class BytesSource: UploadSource {
    private static let piece = 64 << 10
    private let bytes: [UInt8]?
    private var position = 0
    var moved: (() -> Void)?

    init(_ bytes: [UInt8]?) { self.bytes = bytes }

    var length: Int? { bytes?.count ?? 0 }
    var isEmpty: Bool { bytes == nil }
    var canRewind: Bool { true }

    func next() -> BodyPiece {
        guard let bytes, position < bytes.count else { return .ended }
        let end = min(position + Self.piece, bytes.count)
        defer { position = end }
        return .bytes(Array(bytes[position..<end]))
    }

    func rewind() { position = 0 }
    func close() {}
}
