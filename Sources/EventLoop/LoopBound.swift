/// A value of one loop, which a Sendable closure may carry to another thread and back. Only its loop may look inside:
/// anything else traps. It is released on the loop's thread, whichever thread drops the last copy.
package struct LoopBound<Value>: @unchecked Sendable {
    // The loop alone reads the value, and lets it go.
    private let keeper: Keeper

    package init(_ value: Value, on loop: EventLoop) {
        keeper = Keeper(value, loop.inbox)
    }

    package func value(on loop: EventLoop) -> Value {
        precondition(loop.inbox === keeper.inbox, "a value was touched on a loop that isn't its own")
        return keeper.value
    }

    private final class Keeper {
        private final class Held {
            let value: Value

            init(_ value: Value) { self.value = value }
        }

        // Released once, on the loop's thread. A strong reference would be released on the keeper's last thread.
        private let held: Unmanaged<Held>
        // The inbox instead of the loop: it is Sendable, and its address isn't reused while we hold it.
        let inbox: Inbox

        var value: Value { held._withUnsafeGuaranteedRef { $0.value } }

        init(_ value: Value, _ inbox: Inbox) {
            held = .passRetained(Held(value))
            self.inbox = inbox
        }

        deinit {
            // Unsafe in name: one thread releases it, the loop's, or this one if the loop has ended.
            nonisolated(unsafe) let held = held
            // A loop that has ended refuses the post, and touches nothing any more.
            guard !inbox.isOfThisThread, inbox.post({ _ in held.release() }) else { return held.release() }
        }
    }
}
