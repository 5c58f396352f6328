/// A weak reference to an object of one loop, for closures that run elsewhere.
package struct LoopWeak<Object: AnyObject>: Sendable {
    private final class Reference {
        weak var object: Object?
        init(_ object: Object) { self.object = object }
    }

    private let reference: LoopBound<Reference>

    package init(_ object: Object, on loop: EventLoop) { reference = LoopBound(Reference(object), on: loop) }

    /// Runs the work on the loop's thread, if the object still exists. On any thread.
    package func post(_ work: @escaping @Sendable (Object) -> Void) {
        reference.post { if let object = $0.object { work(object) } }
    }
}

/// A value of one loop, for Sendable closures that pass through other threads. Reading it elsewhere traps. It is
/// released on the loop's thread, whichever thread drops the last copy.
package struct LoopBound<Value>: @unchecked Sendable {
    // Only the loop reads and releases the value.
    private let keeper: Keeper

    package init(_ value: Value, on loop: EventLoop) {
        keeper = Keeper(value, loop.inbox)
    }

    package func value(on loop: EventLoop) -> Value {
        precondition(loop.inbox === keeper.inbox, "a value was touched on a loop that isn't its own")
        return keeper.value
    }

    /// Runs the work on the loop's thread, unless the loop has ended. On any thread.
    package func post(_ work: @escaping @Sendable (Value) -> Void) {
        _ = keeper.inbox.post { [self] in work(value(on: $0)) }
    }

    private final class Keeper {
        private final class Held {
            let value: Value

            init(_ value: Value) { self.value = value }
        }

        // Released once, on the loop's thread; a strong reference would be released on the keeper's last thread.
        private let held: Unmanaged<Held>
        // The inbox, not the loop: it is Sendable, and its address isn't reused while held.
        let inbox: Inbox

        var value: Value { held._withUnsafeGuaranteedRef { $0.value } }

        init(_ value: Value, _ inbox: Inbox) {
            held = .passRetained(Held(value))
            self.inbox = inbox
        }

        deinit {
            // Unsafe in name: released by one thread, the loop's, or this one after the loop's end.
            nonisolated(unsafe) let held = held
            guard !inbox.isOfThisThread, inbox.post({ _ in held.release() }) else { return held.release() }
        }
    }
}
