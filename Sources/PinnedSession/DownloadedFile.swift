import Dispatch
import Glibc
import PinproxyEventLoop
import PinproxySession
import PinproxyTransport

/// Writes a body to a file beside its destination, on a bounded queue, and moves it there at the end.
final class DownloadedFile: BodyReceiver {
    /// Bytes that may wait for those that are being written; both take turns in two buffers.
    private static let mostWaiting = 512 << 10
    /// Fewer bytes wait for more, or for the end: each piece that is written wakes the queue's thread.
    private static let leastWritten = 256 << 10

    var isReady: (() -> Void)?
    private(set) var failure: SessionError?
    private let writer: FileWriter
    private let loop: EventLoop
    /// Bytes that wait.
    private var next = FileBuffer()
    /// Nil while its bytes are being written.
    private var spare: FileBuffer? = FileBuffer()
    private var isBlocked = false
    private var completion: ((Result<StoredBody, SessionError>) -> Void)?

    init(_ path: String, on loop: EventLoop) {
        self.loop = loop
        writer = FileWriter(path)
        // An unwritable file fails before a long body has arrived.
        writeNext()
    }

    deinit { writer.abandon() }

    private(set) var carried: UInt64 = 0

    func write(_ piece: RawSpan) throws(StreamError) -> Int {
        if failure != nil { throw .socket(ECANCELED) }
        guard next.bytes.count < Self.mostWaiting else {
            isBlocked = true
            return 0
        }
        next.bytes.append(copying: piece)
        carried += UInt64(piece.byteCount)
        if spare != nil, next.bytes.count >= Self.leastWritten { writeNext() }
        return piece.byteCount
    }

    private func writeNext() {
        guard let other = spare else { return }
        let buffer = next
        (next, spare) = (other, nil)
        let file = LoopWeak(self, on: loop)
        writer.write(buffer) { error in file.post { $0.wrote(buffer, error) } }
    }

    private func wrote(_ buffer: FileBuffer, _ error: SessionError?) {
        buffer.bytes.removeAll(keepingCapacity: true)
        spare = buffer
        if let error {
            failure = failure ?? error
        } else if completion != nil ? !next.bytes.isEmpty : next.bytes.count >= Self.leastWritten {
            writeNext()
        }
        if completion != nil {
            if spare != nil { finishWriting() }
            return
        }
        guard isBlocked || error != nil else { return }
        isBlocked = false
        isReady?()
    }

    func finish(_ completion: @escaping (Result<StoredBody, SessionError>) -> Void) {
        self.completion = completion
        if spare != nil, failure == nil, !next.bytes.isEmpty { writeNext() }
        // Else it follows the last bytes.
        if spare != nil { finishWriting() }
    }

    private func finishWriting() {
        let file = LoopWeak(self, on: loop)
        writer.finish { result in file.post { $0.finished(result) } }
    }

    private func finished(_ result: Result<StoredBody, SessionError>) {
        defer { completion = nil }
        completion?(result)
    }

    func abandon() {
        completion = nil
        writer.abandon()
    }
}

/// Bytes for a file. Reused, since new memory for each piece costs more than copying it.
private final class FileBuffer: @unchecked Sendable {
    // @unchecked: the loop fills it, then the queue reads it, then it is the loop's again.
    var bytes: [UInt8] = []
}

/// The blocking part, on its own queue.
private final class FileWriter: @unchecked Sendable {
    // @unchecked: after init only the serial queue touches it.
    private let queue = DispatchQueue(label: "pinproxy.downloads", qos: .utility)
    private let path: String
    private let temporary: String
    private var descriptor: CInt = -1
    private var isOver = false
    private var failure: SessionError?

    init(_ path: String) {
        self.path = path
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        let directory = slash.map { String(path[...$0]) } ?? ""
        let name = slash.map { path[path.index(after: $0)...] } ?? path[...]
        var generator = SystemRandomNumberGenerator()
        let number = String(generator.next() as UInt64, radix: 16)
        // A file's name has at most 255 bytes.
        temporary = "\(directory).\(name.utf8.count <= 200 ? String(name) : "download").\(number).part"
    }

    func write(_ buffer: FileBuffer, _ done: @escaping @Sendable (SessionError?) -> Void) {
        queue.async { [self] in
            if failure == nil, !isOver { failure = store(buffer.bytes) }
            done(failure)
        }
    }

    func finish(_ done: @escaping @Sendable (Result<StoredBody, SessionError>) -> Void) {
        queue.async { [self] in
            if failure == nil, !isOver { failure = moveIntoPlace() }
            if let failure {
                remove()
                done(.failure(failure))
            } else {
                done(.success(StoredBody(path: path)))
            }
        }
    }

    func abandon() { queue.async { [self] in remove() } }

    private func store(_ bytes: [UInt8]) -> SessionError? {
        if descriptor < 0 {
            var status = stat()
            if unsafe path.isEmpty || path.hasSuffix("/")
                || (stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR)
            {
                return .file(path: path, "it is a directory; name the file")
            }
            // With the process's umask, as any other file.
            descriptor = unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o666)
            if descriptor < 0 { return problem(errno) }
        }
        var written = 0
        while written < bytes.count {
            let count = Descriptor.write(bytes[written...], to: descriptor)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return problem(errno) }
            written += count
        }
        return nil
    }

    private func moveIntoPlace() -> SessionError? {
        // Or a power loss could leave an empty file.
        guard fsync(descriptor) == 0 else { return problem(errno) }
        close(descriptor)
        descriptor = -1
        guard unsafe rename(temporary, path) == 0 else {
            let code = errno
            unsafe unlink(temporary)
            return problem(code)
        }
        isOver = true
        return nil
    }

    private func remove() {
        guard !isOver else { return }
        isOver = true
        guard descriptor >= 0 else { return }
        close(descriptor)
        descriptor = -1
        unsafe unlink(temporary)
    }

    private func problem(_ code: CInt) -> SessionError { unsafe .file(path: path, String(cString: strerror(code))) }
}
