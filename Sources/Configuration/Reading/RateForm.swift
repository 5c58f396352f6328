package import Session

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

extension Quantity {
    /// A rate as it would be written, e.g. `1KiB/5m`.
    package static func text(_ rate: MinimumRate?) -> String {
        rate.map { "\(text(bytes: $0.bytes))/\(text($0.window))" } ?? "off"
    }
}
