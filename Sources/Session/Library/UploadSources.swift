import EventLoop
import Serialization

/// Makes the source of a body; opening files takes a while.
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
    case .form(let form): openFiles(on: loop, completion) { () throws(RequestSerializationError) in try form.open() }
    }
}
