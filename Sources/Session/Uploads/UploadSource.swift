/// The result of asking a body for its next piece.
package enum BodyPiece {
    case bytes([UInt8])
    /// ``UploadSource/moved`` follows.
    case waiting
    case ended
    case failed(ExchangeFailure)
}

package protocol UploadSource: AnyObject {
    /// In bytes, if known.
    var length: Int? { get }
    /// No body at all, which differs from one of no bytes.
    var isEmpty: Bool { get }
    /// Whether it can be sent again, as far as known.
    var canRewind: Bool { get }
    /// Called when bytes are ready after ``BodyPiece/waiting``.
    var moved: (() -> Void)? { get set }
    func next() -> BodyPiece
    func rewind()
    func close()
}
