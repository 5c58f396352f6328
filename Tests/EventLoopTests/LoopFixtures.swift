import Glibc
import Testing

@testable import PinproxyEventLoop

/// Ends a loop that would wait forever, and fails the test: never reached if all is well.
final class Watchdog {
    private var timer: Timer?

    init(_ loop: EventLoop, seconds: UInt64 = 60) {
        timer = Timer(loop: loop, owner: loop, afterNanoseconds: seconds * 1_000_000_000) {
            Issue.record("the loop was still waiting after \(seconds) s")
            $0.stop()
        }
    }
}

/// Runs `loop` until `stop()`, under a watchdog.
func run(_ loop: EventLoop) {
    let watchdog = Watchdog(loop)
    withExtendedLifetime(watchdog) { loop.run() }
}

/// Runs a loop until it has no work left, then returns.
func settle(_ loop: EventLoop) {
    loop.afterThisTurn { loop.afterThisTurn { loop.afterThisTurn { loop.stop() } } }
    run(loop)
}

/// A connected pair of non-blocking unix sockets.
struct SocketPair {
    let a: CInt
    let b: CInt

    init() throws {
        var ends: [CInt] = [-1, -1]
        let type = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        (a, b) = (ends[0], ends[1])
    }

    func close() {
        _ = Glibc.close(a)
        _ = Glibc.close(b)
    }
}

/// A handler made from a closure.
final class ClosureHandler: SocketHandler {
    var ready: (Readiness) -> Void

    init(_ ready: @escaping (Readiness) -> Void = { _ in }) {
        self.ready = ready
    }

    func socketReady(_ readiness: Readiness) {
        ready(readiness)
    }
}

func send(_ byte: UInt8, to descriptor: CInt) {
    var byte = byte
    #expect(write(descriptor, &byte, 1) == 1)
}

func receive(from descriptor: CInt) -> UInt8? {
    var byte: UInt8 = 0
    return read(descriptor, &byte, 1) == 1 ? byte : nil
}
