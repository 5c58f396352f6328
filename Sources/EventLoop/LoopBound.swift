/// A value that lives on one loop, wrapped so that a Sendable closure may carry it to another thread and back.
///
/// Only its loop may look inside: anything else is a programmer's error and traps. The wrapper's last copy should
/// go on the loop's thread too, since that is where the value's deinit belongs; a closure that is posted
/// back to the loop brings this about.
package struct LoopBound<Value>: @unchecked Sendable {
    private let value: Value
    // The inbox instead of the loop: it is Sendable, and its address isn't reused while we hold it.
    private let inbox: Inbox

    package init(_ value: Value, on loop: EventLoop) {
        self.value = value
        inbox = loop.inbox
    }

    /// Whether `loop` is the one that may look inside.
    package func belongs(to loop: EventLoop) -> Bool { loop.inbox === inbox }

    package func value(on loop: EventLoop) -> Value {
        precondition(loop.inbox === inbox, "a value was touched on a loop that isn't its own")
        return value
    }
}
