/// How the text of a scalar is read into a value.
struct Form<Value> {
    let read: (String) -> Result<Value, Reason>
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
            return range.contains(number)
                ? .success(number)
                : .failure(Reason("\(number) is out of range; write a number from \(range.lowerBound) to \(range.upperBound)"))
        }
    }

    static func size(_ range: ClosedRange<Int>) -> Form {
        Form { text in
            Quantity.size(text).flatMap { bytes in
                range.contains(bytes)
                    ? .success(bytes)
                    : .failure(
                        Reason(
                            "\(text) is out of range; write a size from \(Quantity.text(bytes: range.lowerBound)) to \(Quantity.text(bytes: range.upperBound))"))
            }
        }
    }
}

extension Form where Value == Duration {
    static func duration(_ range: ClosedRange<Duration>) -> Form {
        Form { text in
            Quantity.duration(text).flatMap { duration in
                range.contains(duration)
                    ? .success(duration)
                    : .failure(
                        Reason(
                            "\(text) is out of range; write a time from \(Quantity.text(range.lowerBound)) to \(Quantity.text(range.upperBound))"))
            }
        }
    }
}

extension Form {
    /// One word of several.
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

/// `a, b or c`.
func list(_ words: [String], _ conjunction: String = "or") -> String {
    words.count < 2 ? words.joined() : words.dropLast().joined(separator: ", ") + " \(conjunction) " + (words.last ?? "")
}
