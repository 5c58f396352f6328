@testable import PinproxySerialization

/// What a judge throws.
func caught(_ judge: () throws(BodyDefect) -> Void) -> BodyDefect? {
    do throws(BodyDefect) {
        try judge()
        return nil
    } catch {
        return error
    }
}
