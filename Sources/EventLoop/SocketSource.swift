internal import CLibevent

/// What a descriptor is ready for.
package struct Readiness: OptionSet, Sendable {
    package let rawValue: UInt8

    @inlinable package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Bytes, an end of stream or an error can be read without waiting.
    @inlinable package static var read: Readiness { Readiness(rawValue: 1) }
    /// Bytes can be written without waiting, a connect has ended, or there is an error.
    @inlinable package static var write: Readiness { Readiness(rawValue: 2) }
}

/// Hears about readiness from a `SocketSource`.
package protocol SocketHandler: AnyObject {
    /// Called on the loop's thread, once for each kind of readiness that is wanted, again and again as long as it
    /// lasts. It must not block. It may change what is wanted, invalidate or release the source, and release itself.
    func socketReady(_ readiness: Readiness)
}

/// The interest in one descriptor's readiness, level-triggered.
///
/// Nothing is wanted at first. A change of what is wanted costs a few dozen nanoseconds, and an epoll_ctl when the loop
/// goes to wait if it is still a change by then.
///
/// The descriptor isn't owned. Invalidate (or release) the source **before** closing it: libevent keeps its books by
/// number, and a new socket of the same number would be taken for the old one.
package final class SocketSource {
    private let loop: EventLoop
    // unowned: the handler keeps the source, and releases or invalidates it before it goes.
    private unowned let handler: any SocketHandler
    private let descriptor: CInt
    private let readEvent = Event()
    /// Made at first use: most sockets take whatever is written to them, and never wait.
    private var writeEvent: Event?
    private var interest: Readiness = []
    private var isValid = true

    /// - Parameter handler: keeps the source, directly or in an object that only it keeps. Retained during each call.
    package init(loop: EventLoop, descriptor: CInt, handler: any SocketHandler) {
        self.loop = loop
        self.handler = handler
        self.descriptor = descriptor
        loop.makeRoom(for: descriptor)
        // Two events instead of one that is reassigned: switching one side doesn't disturb the other.
        readEvent.assign(
            on: loop.base, descriptor: descriptor, events: EV_READ | EV_PERSIST,
            callback: { _, _, context in
                guard let context else { return }
                SocketSource.fired(context, .read)
            }, context: Unmanaged.passUnretained(self).toOpaque())
    }

    private func addWriteEvent() {
        if writeEvent == nil {
            let event = Event()
            event.assign(
                on: loop.base, descriptor: descriptor, events: EV_WRITE | EV_PERSIST,
                callback: { _, _, context in
                    guard let context else { return }
                    SocketSource.fired(context, .write)
                }, context: Unmanaged.passUnretained(self).toOpaque())
            writeEvent = consume event
        }
        writeEvent?.add()
    }

    package var wantsRead: Bool {
        get { interest.contains(.read) }
        set {
            guard newValue != interest.contains(.read), isValid else { return }
            if newValue {
                interest.insert(.read)
                readEvent.add()
            } else {
                interest.remove(.read)
                readEvent.delete()
            }
        }
    }

    package var wantsWrite: Bool {
        get { interest.contains(.write) }
        set {
            guard newValue != interest.contains(.write), isValid else { return }
            if newValue {
                interest.insert(.write)
                addWriteEvent()
            } else {
                interest.remove(.write)
                writeEvent?.delete()
            }
        }
    }

    /// No callback comes after this, not even one that libevent has already taken note of; nothing can be wanted
    /// any more. May be repeated.
    package func invalidate() {
        wantsRead = false
        wantsWrite = false
        isValid = false
    }

    private static func fired(_ context: UnsafeMutableRawPointer, _ readiness: Readiness) {
        // The handler is loaded once, and so retained until its call returns.
        //
        // The source isn't retained, and isn't touched after the call: a handler that releases it expects it to be
        // disarmed at once, before its descriptor is closed and the number is used again. The loop isn't either: its
        // ``EventLoop/run()`` is on the stack and keeps it. Each would cost a retain for every event of every socket.
        let (loop, handler) = Unmanaged<SocketSource>.fromOpaque(context)._withUnsafeGuaranteedRef {
            (Unmanaged.passUnretained($0.loop), $0.handler)
        }
        loop._withUnsafeGuaranteedRef { $0.beginTurn() }
        handler.socketReady(readiness)
        loop._withUnsafeGuaranteedRef { $0.endTurn() }
    }
}
