internal import CLibevent

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

package protocol SocketHandler: AnyObject {
    /// Called on the loop's thread, once a turn for each kind that is wanted, as long as it lasts. It must not block;
    /// it may invalidate or release the source and itself.
    func socketReady(_ readiness: Readiness)
}

/// The interest in one descriptor's readiness, level-triggered; nothing is wanted at first. A change costs an epoll_ctl
/// if it still is one when the loop waits.
///
/// Invalidate (or release) the source **before** closing its descriptor, which it doesn't own: libevent would take a
/// new socket of the same number for the old one.
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

    /// No callback comes after this, and nothing can be wanted any more. May be repeated.
    package func invalidate() {
        wantsRead = false
        wantsWrite = false
        isValid = false
    }

    private static func fired(_ context: UnsafeMutableRawPointer, _ readiness: Readiness) {
        // The handler is retained by its load until its call returns. The source isn't retained, and isn't touched
        // after the call: releasing it must disarm it at once, before its number is used again. The loop's
        // ``EventLoop/run()`` is on the stack and keeps it. Each would cost a retain for every event.
        let (loop, handler) = Unmanaged<SocketSource>.fromOpaque(context)._withUnsafeGuaranteedRef {
            (Unmanaged.passUnretained($0.loop), $0.handler)
        }
        loop._withUnsafeGuaranteedRef { $0.beginTurn() }
        handler.socketReady(readiness)
        loop._withUnsafeGuaranteedRef { $0.endTurn() }
    }
}
