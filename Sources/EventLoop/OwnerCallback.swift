/// What a deadline or a timer calls: a closure that is given the deadline's owner.
///
/// The owner is not held between two calls, since it holds the deadline; it is held until a call returns, so that it
/// may let go of itself and of the deadline within. The closure captures no object of the loop: none is Sendable.
struct OwnerCallback {
    private let call: () -> Void

    init<Owner: AnyObject>(_ owner: Owner, _ body: @escaping @Sendable (Owner) -> Void) {
        // unowned: the owner holds the deadline, which can't fire after the owner has let go of it.
        call = { [unowned owner] in body(owner) }
    }

    func callAsFunction() { call() }
}
