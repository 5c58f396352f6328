internal import CPinproxyShims
internal import Glibc

/// A detached thread (pthreads(7)).
package enum SystemThread {
    /// Signals of the thread's own faults. Blocked, they end the process without `proxy.crash`.
    private static let faults = [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS]

    /// Blocks all signals but those of faults.
    /// - Parameters:
    ///   - name: for debuggers, which show 15 bytes.
    ///   - stackSize: in bytes, a multiple of a page.
    ///   - work: called once, on the thread, which ends with it.
    package static func start(
        _ name: String, stackSize: Int, _ work: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        let body = Unmanaged.passRetained(Body(name: name, work: work))
        // The new thread inherits the mask.
        var (blocked, before) = (sigset_t(), sigset_t())
        sigfillset(&blocked)
        for fault in faults { sigdelset(&blocked, fault) }
        pthread_sigmask(SIG_SETMASK, &blocked, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        let failure = withUnsafeTemporaryAllocation(of: pthread_attr_t.self, capacity: 1) { buffer -> CInt in
            guard let attributes = buffer.baseAddress else { return ENOMEM }
            pthread_attr_init(attributes)
            defer { pthread_attr_destroy(attributes) }
            pthread_attr_setdetachstate(attributes, CInt(PTHREAD_CREATE_DETACHED))
            pthread_attr_setstacksize(attributes, stackSize)
            var thread = pthread_t()
            return pthread_create(
                &thread, attributes,
                { pointer in
                    guard let pointer else { return nil }
                    let body = Unmanaged<Body>.fromOpaque(pointer).takeRetainedValue()
                    pthread_setname_np(pthread_self(), String(decoding: body.name.utf8.prefix(15), as: UTF8.self))
                    body.work()
                    return nil
                }, body.toOpaque())
        }
        guard failure == 0 else {
            body.release()
            throw SystemError(code: failure, call: "pthread_create")
        }
    }

    /// Works on a separate thread, and waits for it. Its heap keeps garbage apart from what stays.
    package static func run<Value: Sendable>(
        _ name: String, stackSize: Int, _ work: @escaping @Sendable () -> Value
    ) throws(SystemError) -> Value {
        // Read after the thread's end.
        nonisolated(unsafe) let result = UnsafeMutablePointer<Value>.allocate(capacity: 1)
        defer { result.deallocate() }
        let done = Semaphore()
        try start(name, stackSize: stackSize) {
            result.initialize(to: work())
            done.signal()
        }
        done.wait()
        return result.move()
    }

    private final class Body: Sendable {
        let name: String
        let work: @Sendable () -> Void

        init(name: String, work: @escaping @Sendable () -> Void) {
            self.name = name
            self.work = work
        }
    }
}
