import PinproxyDaemon

/// The response of a collector for metrics and logs.
enum CollectorAnswers {
    /// One choice: the status.
    static func answer(_ bytes: [UInt8]) {
        var choices = Choices(bytes, count: 1)
        let statuses = [200, 204, 429, 503, 400]
        let status = statuses[Int(choices.byte()) % statuses.count]
        let body = choices.input
        let field = String(decoding: body.prefix(64), as: UTF8.self)
        switch CollectorAnswer(status: status, type: nil, retryAfter: field, body: body, at: 1_800_000_000) {
        case .taken(let rejection):
            require(status < 300, "only a 2xx is taken")
            guard let rejection else { return }
            require(!body.isEmpty, "an empty answer rejects nothing")
            require(rejection.count > 0 || !rejection.message.isEmpty, "a rejection says something")
            // Each of 500 bytes may become a replacement character.
            require(rejection.message.utf8.count <= 1500, "what it says is short")
        case .later(_, let wait):
            require(status == 429 || status == 503, "only these are tried again")
            require(wait.map { $0 >= .zero && $0 <= .seconds(3600) } ?? true, "it waits for an hour at most")
        case .refused: require(status != 429 && status != 503, "those are tried again")
        }
    }
}
