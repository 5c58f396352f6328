internal import CPinproxyShims
internal import Glibc

/// Reads signals, with their senders, from a descriptor (signalfd). They must be blocked in every thread.
package struct SignalDescriptor: ~Copyable {
    package struct Arrival: Sendable {
        package let signal: CInt
        /// The process that sent it; nil: the kernel, e.g. for a key of the terminal.
        package let sender: CInt?
    }

    private let descriptor: Descriptor

    package init(_ signals: [CInt]) throws(SystemError) {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals { sigaddset(&set, signal) }
        let raw = signalfd(-1, &set, CInt(SFD_NONBLOCK) | CInt(SFD_CLOEXEC))
        guard raw >= 0 else { throw SystemError.last("signalfd") }
        descriptor = Descriptor(owning: raw)
    }

    package var raw: CInt { descriptor.raw }

    /// The next pending signal.
    package func next() -> Arrival? {
        var signal = signalfd_siginfo()
        let size = MemoryLayout<signalfd_siginfo>.size
        while true {
            let count = read(descriptor.raw, &signal, size)
            if count < 0, errno == EINTR { continue }
            guard count == size else { return nil }
            let isSent = signal.ssi_code <= 0
            return Arrival(signal: CInt(signal.ssi_signo), sender: isSent ? CInt(signal.ssi_pid) : nil)
        }
    }
}
