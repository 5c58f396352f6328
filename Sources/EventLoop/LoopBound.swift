/// A weak reference to an object of one loop, for closures that run elsewhere.
package struct LoopWeak<Object: AnyObject>: Sendable {
    private final class Reference {
        weak var object: Object?
        init(_ object: Object) { self.object = object }
    }

    private let reference: LoopBound<Reference>

    package init(_ object: Object, on loop: EventLoop) { reference = LoopBound(Reference(object), on: loop) }

    /// Runs the work on the loop's thread, if the object is still there. Any thread.
    package func post(_ work: @escaping @Sendable (Object) -> Void) {
        reference.post { if let object = $0.object { work(object) } }
    }
}

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

    /// Runs the work on the loop's thread. Any thread; it is dropped if the loop has ended.
    package func post(_ work: @escaping @Sendable (Value) -> Void) {
        _ = keeper.inbox.post { [self] in work(value(on: $0)) }
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
