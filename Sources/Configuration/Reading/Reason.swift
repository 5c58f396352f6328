/// Why a value can't be what it should be, for people.
struct Reason: Error, Equatable {
    let text: String

    init(_ text: String) {
        self.text = text
    }
}
