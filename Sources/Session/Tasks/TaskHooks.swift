import EventLoop
package import HTTPWire
package import Serialization

/// Observers of tasks on their loop, which must not end or change the task. Each task gets ``metricsCollected``, then
/// ``completed``, once.
package struct TaskHooks {
    package var began: ((borrowing TaskRecord) -> Void)?
    /// With who wanted it, for people.
    package var suspended: ((borrowing TaskRecord, String) -> Void)?
    /// With who wanted it, for people.
    package var resumed: ((borrowing TaskRecord, String) -> Void)?
    /// A download broke off, and the rest of it is asked for.
    package var broke: ((borrowing TaskRecord, ResponseBreak) -> Void)?
    /// The configured credentials were refused, and aren't sent there again.
    package var refusedCredentials: ((borrowing TaskRecord, RefusedCredentials) -> Void)?
    /// A response is not what the rules want it to be; that may be found out after its task is over.
    package var judged: ((ResponseFinding, ResponseSerializationError) -> Void)?
    /// The record is whole: nothing is measured after this.
    package var metricsCollected: ((borrowing TaskRecord) -> Void)?
    package var completed: ((borrowing TaskRecord) -> Void)?

    package init() {}
}

package struct RefusedCredentials: Sendable {
    package let origin: RequestURL.Origin
    package let user: String
    /// In the origin's words.
    package let realm: [UInt8]
}

package struct ResponseBreak: Sendable {
    package let offset: UInt64
    /// Of the whole body, in bytes.
    package let length: UInt64
    /// How long is waited before.
    package let pauseNanoseconds: UInt64
    package let cause: String
}
