package import TLS

/// What `pinproxy learn` asks of the running proxy. Whatever it is, what was seen until then is written.
package struct LearnOrder: Sendable, Equatable {
    package enum Time: Sendable, Equatable {
        /// As it is.
        case unchanged
        /// Record every host's chains until then.
        case until(UnixTime)
        /// Record those of entries with `record: true` only.
        case stop
    }

    package var time: Time
    /// Forget what was recorded.
    package var forgets: Bool

    package init(_ time: Time = .unchanged, forgets: Bool = false) {
        self.time = time
        self.forgets = forgets
    }

    /// As the parameters of `POST /learn` have it; nil if there is one that has no meaning.
    package init?(_ query: [String: String]) {
        guard query.keys.allSatisfy(["until", "stop", "forget"].contains) else { return nil }
        forgets = query["forget"] != nil
        if let text = query["until"] {
            guard let until = UnixTime(text), until > 0, query["stop"] == nil else { return nil }
            time = .until(until)
        } else {
            time = query["stop"] == nil ? .unchanged : .stop
        }
    }

    /// What is asked for.
    package var target: String {
        var parameters: [String] = []
        switch time {
        case .unchanged: break
        case .until(let time): parameters.append("until=\(time)")
        case .stop: parameters.append("stop")
        }
        if forgets { parameters.append("forget") }
        return "/learn" + (parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&"))
    }
}

/// What `POST /learn` answers.
package struct LearnReport: Codable, Sendable, Equatable {
    /// Until when every host's chains are recorded; nil: they aren't.
    package let until: UnixTime?
}
