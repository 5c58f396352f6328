internal import PinproxyHTTPWire
internal import PinproxySession

/// Reads the text of a scalar into a value.
struct Form<Value> {
    let read: (String) -> Result<Value, Reason>
}

extension Form {
    /// Reads the text, or gives a reason that any user may see.
    ///
    /// A mistaken or misplaced URL may hold a password. So a reason quotes only from the text without it.
    func readShowably(_ text: String) -> Result<Value, Reason> {
        let result = read(text)
        guard case .failure(let reason) = result else { return result }
        let shown = ShownText.hidingSecrets(in: text)
        guard shown != text else { return result }
        if case .failure(let reason) = read(shown) { return .failure(reason) }
        // The hidden part is invalid.
        return reason.text.contains("\"") ? .failure(Reason("\"\(ShownText(text))\" is not valid here")) : result
    }
}

extension Form where Value == Bool {
    static var bool: Form {
        Form { text in
            switch text {
            case "true", "True", "TRUE": .success(true)
            case "false", "False", "FALSE": .success(false)
            default: .failure(Reason("\"\(text)\" is neither true nor false"))
            }
        }
    }
}

extension Form where Value == String {
    static var text: Form { Form { .success($0) } }
}

extension Form where Value == Int {
    static func integer(_ range: ClosedRange<Int>) -> Form {
        Form { text in
            guard let number = Int(text), !text.hasPrefix("+") else {
                return .failure(Reason("\"\(text)\" is not a whole number"))
            }
            return inRange(number, range, "\(number)", "a number", String.init)
        }
    }

    static func size(_ range: ClosedRange<Int>) -> Form {
        Form { text in
            Quantity.size(text).flatMap { inRange($0, range, text, "a size", Quantity.text(bytes:)) }
        }
    }
}

extension Form where Value == Duration {
    static func duration(_ range: ClosedRange<Duration>) -> Form {
        // Times of days aren't given in seconds.
        let usual = range.lowerBound >= .days(1) ? ("d", "days") : ("s", "seconds")
        return Form { text in
            Quantity.duration(text, usual: usual).flatMap { inRange($0, range, text, "a time", Quantity.text) }
        }
    }
}

extension Form {
    static func word(_ words: [(String, Value)]) -> Form {
        Form { text in
            if let match = words.first(where: { $0.0 == text }) { return .success(match.1) }
            let names = words.map(\.0)
            if let nearest = NearestKey.find(text, in: names) {
                return .failure(Reason("unknown value \"\(text)\"; did you mean \"\(nearest)\"?"))
            }
            return .failure(Reason("unknown value \"\(text)\"; write \(list(names))"))
        }
    }
}

private func inRange<Value: Comparable>(
    _ value: Value, _ range: ClosedRange<Value>, _ written: String, _ kind: String, _ text: (Value) -> String
) -> Result<Value, Reason> {
    if range.contains(value) { return .success(value) }
    let (least, most) = (text(range.lowerBound), text(range.upperBound))
    return .failure(Reason("\(written) is out of range; write \(kind) from \(least) to \(most)"))
}

/// `a, b or c`.
private func list(_ words: [String]) -> String {
    guard let last = words.last, words.count > 1 else { return words.joined() }
    return words.dropLast().joined(separator: ", ") + " or " + last
}

extension Form where Value == MinimumRate? {
    /// `1KiB/5m`, or `off`.
    static var minimumRate: Form {
        Form { text in
            if text == "off" { return .success(nil) }
            let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2 else {
                return .failure(Reason("\"\(text)\" is not a rate; write a size and a time, e.g. 1KiB/5m, or off"))
            }
            return Form<Int>.size(1...1 << 30).read(parts[0]).flatMap { bytes in
                Form<Duration>.duration(.milliseconds(1)...(.days(1))).read(parts[1]).map { window in
                    MinimumRate(bytes: bytes, within: window)
                }
            }
        }
    }
}
