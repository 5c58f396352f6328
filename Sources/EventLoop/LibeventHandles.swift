internal import CPinproxyLibevent
internal import Glibc

/// libevent's `event_base`, owned.
struct EventBase: ~Copyable {
    let raw: OpaquePointer

    init() throws(SystemError) {
        guard let configuration = event_config_new() else {
            throw SystemError(code: ENOMEM, call: "event_config_new")
        }
        defer { event_config_free(configuration) }
        // NOLOCK: only its own thread touches a base; others use the inbox.
        // EPOLL_USE_CHANGELIST: changes within a turn cost one epoll_ctl or none. It forbids descriptors that share an
        // open file (dup, fork); here every socket is CLOEXEC, and workers don't fork. A number closed and reopened
        // within one turn works: libevent meets ENOENT and adds it (SocketSourceTests).
        // IGNORE_ENV: EVENT_NOEPOLL and other variables don't count.
        // Not PRECISE_TIMER: it would cost a timerfd_settime where deadlines need milliseconds.
        let flags =
            EVENT_BASE_FLAG_NOLOCK.rawValue | EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST.rawValue
            | EVENT_BASE_FLAG_IGNORE_ENV.rawValue
        event_config_set_flag(configuration, CInt(bitPattern: flags))
        errno = 0
        guard let raw = event_base_new_with_config(configuration) else {
            throw SystemError(code: errno == 0 ? ENOMEM : errno, call: "event_base_new_with_config")
        }
        self.raw = raw
    }

    /// Makes libevent allocate for those descriptors, by adding and deleting an event before the loop waits.
    func makeRoom(for descriptors: Range<CInt>) {
        let memory = calloc(1, event_get_struct_event_size())
        guard let memory else { preconditionFailure("out of memory") }
        defer { free(memory) }
        let event = OpaquePointer(memory)
        for descriptor in descriptors {
            event_assign(event, raw, descriptor, Int16(EV_READ | EV_PERSIST), { _, _, _ in }, nil)
            event_add(event, nil)
            event_del(event)
        }
    }

    deinit { event_base_free(raw) }
}

/// One libevent event, owned: removed with the value. Its holder keeps the loop too. `assign` comes later, because the
/// context is usually the object that holds the event.
struct Event: ~Copyable {
    private let raw: OpaquePointer

    init() {
        // calloc fails only without address space, where nothing can continue.
        let memory = calloc(1, event_get_struct_event_size())
        guard let memory else { preconditionFailure("out of memory") }
        raw = OpaquePointer(memory)
    }

    /// Call it once, first. `context` isn't retained: it must outlive the event or be its holder.
    func assign(
        on base: borrowing EventBase, descriptor: CInt = -1, events: CInt = 0,
        callback: event_callback_fn, context: UnsafeMutableRawPointer
    ) {
        let status = event_assign(raw, base.raw, descriptor, Int16(truncatingIfNeeded: events), callback, context)
        precondition(status == 0, "event_assign refused its arguments")
    }

    /// Waits for the descriptor; idempotent.
    func add() {
        event_add(raw, nil)
    }

    /// Fires once after that time, rounded up to microseconds; replaces an earlier time.
    func add(afterNanoseconds delay: UInt64) {
        // A century means "never": more could overflow libevent's timeval.
        let microseconds = min(delay / 1000 + (delay % 1000 == 0 ? 0 : 1), 3_155_760_000_000_000)
        var time = timeval(
            tv_sec: Int(microseconds / 1_000_000), tv_usec: Int(microseconds % 1_000_000))
        event_add(raw, &time)
    }

    /// Runs its callback in this round of the loop, after those that are active already.
    func activate() {
        event_active(raw, CInt(EV_TIMEOUT), 0)
    }

    /// Makes it neither pending nor active.
    func delete() {
        event_del(raw)
    }

    deinit {
        event_del(raw)
        free(UnsafeMutableRawPointer(raw))
    }
}
