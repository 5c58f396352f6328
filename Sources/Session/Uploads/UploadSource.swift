/// What a body comes to when its next piece is asked for.
package enum BodyPiece {
    case bytes([UInt8])
    /// ``UploadSource/moved`` follows.
    case waiting
    case ended
    case failed(ExchangeFailure)
}

package protocol UploadSource: AnyObject {
    /// In bytes; nil: it isn't known.
    var length: Int? { get }
    /// There is no body; one of no bytes is one.
    var isEmpty: Bool { get }
    /// It can be sent again, as far as that is known now.
    var canRewind: Bool { get }
    /// Told when there is something after ``BodyPiece/waiting``.
    var moved: (() -> Void)? { get set }
    func next() -> BodyPiece
    func rewind()
    func close()
}
