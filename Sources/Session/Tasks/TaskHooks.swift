import EventLoop
package import Serialization

/// Who is told of tasks, on the loop that they live on. Each is called at most once for what it tells, and must
/// not end or change the task from within the call.
package struct TaskHooks {
    package var began: ((borrowing TaskRecord) -> Void)?
    package var suspended: ((borrowing TaskRecord) -> Void)?
    package var resumed: ((borrowing TaskRecord) -> Void)?
    /// A response is not what the rules want it to be; that may be found out after its task is over.
    package var judged: ((ResponseFinding, ResponseSerializationError) -> Void)?
    /// The record is whole: metrics included.
    package var completed: ((borrowing TaskRecord) -> Void)?

    package init() {}
}
