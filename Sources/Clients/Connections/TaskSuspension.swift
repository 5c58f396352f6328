/// Whether a task rests that isn't an exchange yet, or not any more: a CONNECT on its way to being a tunnel, or the
/// inside of an intercepted connection. A part of ``ClientConnection``, whose step it keeps.
enum TaskSuspension {
    case none
    case suspended
    /// A step has ended meanwhile: what follows is done when the task is resumed.
    case holding(ClientConnection.Step)

    var isSuspended: Bool { if case .none = self { false } else { true } }
}
