internal import FoundationEssentials
internal import Glibc
internal import PinproxySecurity

struct Palette {
    let isColoured: Bool

    /// On a terminal that can, unless NO_COLOR (no-color.org) is set.
    static var standardOutput: Palette {
        let environment = StartEnvironment.variables
        let isUnwanted = environment["NO_COLOR"]?.isEmpty == false || environment["TERM"] == "dumb"
        return Palette(isColoured: isatty(STDOUT_FILENO) == 1 && !isUnwanted)
    }

    func paint(_ text: String, _ outcome: PinproxySecurity.Check.Outcome) -> String {
        guard isColoured else { return text }
        let code =
            switch outcome {
            case .passed: 32
            case .failed: 31
            case .reported: 33
            case .skipped: 2
            }
        return "\u{1B}[\(code)m\(text)\u{1B}[0m"
    }
}
