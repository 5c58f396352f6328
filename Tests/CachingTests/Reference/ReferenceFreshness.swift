/// RFC 9111 section 4.2, literally, in numbers that never overflow.
struct ReferenceFreshness {
    let response: MeantResponse
    let isShared: Bool
    let requestTime: Int64
    let responseTime: Int64

    /// Section 4.2.1: the first of these that is present.
    var freshnessLifetime: Int128 {
        let control = response.effectiveControl
        if isShared, let seconds = control.seconds("s-maxage") { return seconds }
        if let seconds = control.seconds("max-age") { return seconds }
        if !response.expires.isEmpty {
            // Section 5.3: what isn't a date is in the past. Of several, the earliest.
            guard
                let expires = response.expires.reduce(
                    Int64?.some(.max),
                    { known, new in
                        if let known, let new { min(known, new) } else { nil }
                    })
            else { return 0 }
            return max(0, min(Int128(expires) - dateValue, 1 << 31))
        }
        // Section 4.2.2: heuristics.
        guard let modified = response.lastModified,
            [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501].contains(response.status)
                || control.has("public")
        else { return 0 }
        let unchanged = min(dateValue, Int128(responseTime)) - Int128(modified)
        return max(0, min(unchanged / 10, 86_400))
    }

    /// Section 4.2.3; RFC 9110 section 6.6.1: without a Date, when it was received.
    private var dateValue: Int128 { Int128(response.date ?? responseTime) }

    var correctedInitialAge: Int128 {
        let ageValue = Int128(response.age ?? 0)
        let apparentAge = max(0, Int128(responseTime) - dateValue)
        let responseDelay = max(0, Int128(responseTime) - Int128(requestTime))
        let correctedAgeValue = ageValue + responseDelay
        return max(apparentAge, correctedAgeValue)
    }

    func currentAge(_ now: Int64) -> Int128 {
        let residentTime = Int128(now) - Int128(responseTime)
        return correctedInitialAge + max(0, residentTime)
    }

    /// The clock was set back before the response's arrival: its age isn't known.
    func isOfTheFuture(_ now: Int64) -> Bool { now < responseTime }

    func isFresh(_ now: Int64) -> Bool { freshnessLifetime > currentAge(now) && !isOfTheFuture(now) }

    func staleness(_ now: Int64) -> Int128 { currentAge(now) - freshnessLifetime }
}

extension MeantResponse {
    /// Pragma counts if there is no Cache-Control (section 5.4, which requires it for requests).
    var effectiveControl: Control { control ?? Control(said: isPragma ? ["no-cache": [nil]] : [:]) }

    var hasStrongTag: Bool { tag.map { !$0.isWeak } ?? false }
    var hasValidator: Bool { tag != nil || lastModified != nil }

    /// RFC 9110 section 8.8.2.2, with the minute of RFC 7232.
    var strongDate: Int64? {
        guard let lastModified, let date, date - lastModified >= 60 else { return nil }
        return lastModified
    }
}

extension MeantRequest {
    var effectiveControl: Control { control ?? Control(said: isPragma ? ["no-cache": [nil]] : [:]) }
}
