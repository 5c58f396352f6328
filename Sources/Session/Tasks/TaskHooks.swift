import PinproxyEventLoop
package import PinproxyHTTPWire
package import PinproxySerialization

/// Observers of tasks on their loop; they must not change a task. Each gets ``metricsCollected``, then ``completed``,
/// once.
package struct TaskHooks {
    package var began: ((borrowing TaskRecord) -> Void)?
    /// With the cause, in human-readable form.
    package var suspended: ((borrowing TaskRecord, String) -> Void)?
    package var resumed: ((borrowing TaskRecord, String) -> Void)?
    /// A download was interrupted, and the remainder is requested.
    package var broke: ((borrowing TaskRecord, ResponseBreak) -> Void)?
    /// The configured credentials were refused, and aren't sent there again.
    package var refusedCredentials: ((borrowing TaskRecord, RefusedCredentials) -> Void)?
    /// A response breaks the rules; perhaps found after the task's end.
    package var judged: ((ResponseFinding, ResponseSerializationError) -> Void)?
    package var metricsCollected: ((borrowing TaskRecord) -> Void)?
    package var completed: ((borrowing TaskRecord) -> Void)?

    package init() {}
}

package struct RefusedCredentials: Sendable {
    package let origin: RequestURL.Origin
    package let user: String
    package let realm: [UInt8]
}

package struct ResponseBreak: Sendable {
    package let offset: UInt64
    /// Bytes of the whole body.
    package let length: UInt64
    /// The wait before the next try.
    package let pauseNanoseconds: UInt64
    package let cause: String
}
