internal import CPinproxyLibevent

package struct Readiness: OptionSet, Sendable {
    package let rawValue: UInt8

    @inlinable package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Bytes, an end of stream or an error can be read.
    @inlinable package static var read: Readiness { Readiness(rawValue: 1) }
    /// Bytes can be written, a connect ended, or there is an error.
    @inlinable package static var write: Readiness { Readiness(rawValue: 2) }
}

package protocol SocketHandler: AnyObject {
    /// Called on the loop's thread, once a turn for each wanted kind, while it lasts. It must not block; it may
    /// invalidate or release the source and itself.
    func socketReady(_ readiness: Readiness)
}

/// The interest in a descriptor's readiness, level-triggered; at first none. A change costs an epoll_ctl unless undone
/// before the loop waits. Invalidate (or release) the source **before** closing its descriptor, which it doesn't own:
/// libevent would take a new socket of the same number for the old one.
package final class SocketSource {
    private let loop: EventLoop
    // unowned: the handler keeps the source, and releases or invalidates it before its own end.
    private unowned let handler: any SocketHandler
    private let descriptor: CInt
    private let readEvent = Event()
    /// Made at first use: most sockets never wait to write.
    private var writeEvent: Event?
    private var interest: Readiness = []
    private var isValid = true

    /// - Parameter handler: keeps the source, directly or in an object that only it keeps. Retained during each call.
    package init(loop: EventLoop, descriptor: CInt, handler: any SocketHandler) {
        self.loop = loop
        self.handler = handler
        self.descriptor = descriptor
        loop.makeRoom(for: descriptor)
        // Two events, so that switching one side doesn't disturb the other.
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

    /// Ends all callbacks permanently. Idempotent.
    package func invalidate() {
        wantsRead = false
        wantsWrite = false
        isValid = false
    }

    private static func fired(_ context: UnsafeMutableRawPointer, _ readiness: Readiness) {
        // The load retains the handler until its call returns. The source isn't retained, and isn't touched after the
        // call: releasing it must disarm it before its number is reused. ``EventLoop/run()``, on the stack, keeps the
        // loop. Each would cost a retain for every event.
        let (loop, handler) = Unmanaged<SocketSource>.fromOpaque(context)._withUnsafeGuaranteedRef {
            (Unmanaged.passUnretained($0.loop), $0.handler)
        }
        loop._withUnsafeGuaranteedRef { $0.beginTurn() }
        handler.socketReady(readiness)
        loop._withUnsafeGuaranteedRef { $0.endTurn() }
    }
}
