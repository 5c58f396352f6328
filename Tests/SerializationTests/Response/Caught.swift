@testable import PinproxySerialization

/// Returns what a judge throws.
func caught(_ judge: () throws(BodyDefect) -> Void) -> BodyDefect? {
    do throws(BodyDefect) {
        try judge()
        return nil
    } catch {
        return error
    }
}
