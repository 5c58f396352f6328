/// A cache that follows RFC 9111 section by section. Where it leaves a choice, "here" marks pinproxy's.
struct ReferenceCache {
    struct Entry {
        var path: String
        var response: MeantResponse
        var requestTime: Int64
        var responseTime: Int64
        /// The request's values of the fields in Vary.
        var selecting: [String: String?]
        var bytes: Range<Int>
    }

    let isShared: Bool
    /// The newest first.
    private(set) var entries: [Entry] = []

    // MARK: Section 4: constructing responses from caches

    private func index(for request: MeantRequest) -> Int? {
        entries.firstIndex { entry in
            entry.path == request.path
                && entry.selecting.allSatisfy { Self.value(of: $0.key, in: request) == $0.value }
        }
    }

    static func value(of field: String, in request: MeantRequest) -> String? {
        field == "accept" ? request.accept : field == "x-a" ? request.other : nil
    }

    private func freshness(_ entry: Entry) -> ReferenceFreshness {
        ReferenceFreshness(
            response: entry.response, isShared: isShared, requestTime: entry.requestTime,
            responseTime: entry.responseTime)
    }

    func outcome(of request: MeantRequest, at now: Int64) -> Outcome {
        let outcome = unconditionalOutcome(of: request, at: now)
        // Section 5.2.1.7.
        if case .forwarded = outcome, request.effectiveControl.has("only-if-cached") { return .unavailable }
        return outcome
    }

    private func unconditionalOutcome(of request: MeantRequest, at now: Int64) -> Outcome {
        guard ["GET", "HEAD"].contains(request.method), let index = index(for: request) else {
            return .forwarded(validators: [])
        }
        let entry = entries[index]
        // Here: a response that credentials must not be answered with isn't used for them either (section 3.5).
        if request.hasAuthorization, !Self.allowsAuthorization(entry.response) { return .forwarded(validators: []) }
        if mayUse(entry, for: request, at: now), let served = served(entry, to: request, at: now) {
            return .served(served)
        }
        return .forwarded(validators: validators(of: entry, for: request))
    }

    private func mayUse(_ entry: Entry, for request: MeantRequest, at now: Int64) -> Bool {
        let (asks, says) = (request.effectiveControl, entry.response.effectiveControl)
        let freshness = freshness(entry)
        let age = freshness.currentAge(now)
        // Section 4.3.2: the origin evaluates If-Match.
        if request.ifMatch { return false }
        // Sections 5.2.1.4 and 5.2.2.4; here: no-store asks the origin too.
        if asks.has("no-cache") || asks.has("no-store") || says.has("no-cache") { return false }
        // Section 5.2.1.1; here: max-age=0 requires a validated response.
        if let most = asks.seconds("max-age"), age > most || most == 0 {
            guard let stale = maxStale(asks), maySendStale(says), age <= most + stale else { return false }
        }
        // Section 5.2.1.3.
        if let least = asks.seconds("min-fresh") {
            return freshness.isFresh(now) && freshness.freshnessLifetime >= age + least
        }
        if freshness.isFresh(now) { return true }
        // Section 4.2.4.
        guard maySendStale(says), !freshness.isOfTheFuture(now) else { return false }
        let staleness = freshness.staleness(now)
        // Section 5.2.1.2.
        if let most = maxStale(asks), staleness <= most { return true }
        // RFC 5861 section 3; section 5.2.1.1: max-age alone allows nothing stale.
        if let most = says.seconds("stale-while-revalidate"), staleness < most {
            return asks.seconds("max-age") == nil || asks.has("max-stale")
        }
        return false
    }

    private func maxStale(_ asks: Control) -> Int128? {
        guard let arguments = asks.said["max-stale"] else { return nil }
        return arguments.map { $0 == nil ? 1 << 100 : Control(said: ["n": [$0]]).seconds("n") ?? 0 }.min()
    }

    /// Sections 5.2.2.2, 5.2.2.8 and 5.2.2.10.
    private func maySendStale(_ says: Control) -> Bool {
        if says.has("must-revalidate") { return false }
        return !isShared || !says.has("proxy-revalidate") && !says.has("s-maxage")
    }

    // MARK: Section 4.3: validation

    private func validators(of entry: Entry, for request: MeantRequest) -> [String] {
        // Here: only for GET, and only if the stored response could answer it.
        guard request.method == "GET", !request.ifMatch, !request.effectiveControl.has("no-store"),
            served(entry, to: request, at: 0) != nil
        else { return [] }
        var validators: [String] = []
        if let tag = entry.response.tag { validators.append("If-None-Match: \(tag.text)") }
        if let date = entry.response.lastModified { validators.append("If-Modified-Since: \(Calendar.text(date))") }
        return validators
    }

    /// RFC 9110 sections 13.2.2 and 14.2, RFC 9111 sections 3.3 and 4.3.2. Nil: part of the requested range is missing.
    private func served(_ entry: Entry, to request: MeantRequest, at now: Int64) -> Outcome.Served? {
        let response = entry.response
        let age = Int64(freshness(entry).currentAge(now))
        func served(_ status: Int, _ bytes: Range<Int>?) -> Outcome.Served {
            Outcome.Served(status: status, id: response.id, age: age, bytes: bytes)
        }
        if (200..<300).contains(response.status) {
            switch request.ifNoneMatch {
            case .any?: return served(304, nil)
            case .list(let tags)?:
                if let own = response.tag, tags.contains(where: { $0.value == own.value }) { return served(304, nil) }
            case .malformed?: break
            case nil:
                if let since = request.ifModifiedSince, let changed = response.lastModified ?? response.date,
                    changed <= since
                {
                    return served(304, nil)
                }
            }
        }
        let hasAll = entry.bytes == 0..<response.complete
        let all = hasAll ? served(response.status, request.method == "HEAD" ? nil : entry.bytes) : nil
        guard response.status == 200 || response.status == 206, request.method == "GET", let wish = request.range,
            wish != .other, isSameVersion(request, response)
        else { return all }
        let first: Int
        let last: Int
        switch wish {
        case .other: return all
        case .bytes(let from, let to): (first, last) = (from, min(to ?? .max, response.complete - 1))
        case .suffix(0): return served(416, nil)
        case .suffix(let count): (first, last) = (max(0, response.complete - count), response.complete - 1)
        }
        guard first < response.complete else { return served(416, nil) }
        guard entry.bytes.contains(first), entry.bytes.contains(last) else { return nil }
        return served(206, first..<last + 1)
    }

    /// RFC 9110 section 13.1.5.
    private func isSameVersion(_ request: MeantRequest, _ response: MeantResponse) -> Bool {
        switch request.ifRange {
        case nil: true
        case .tag(let tag)?: !tag.isWeak && response.tag == tag
        case .date(let date)?: response.strongDate == date
        case .malformed?: false
        }
    }

    // MARK: Responses

    mutating func receive(
        _ response: MeantResponse, to request: MeantRequest, with validators: [String], requested: Int64, at now: Int64
    ) -> Outcome {
        if request.method == "GET" {
            return receiveOfGet(response, request, isConfirming: !validators.isEmpty, requested, now)
        }
        if request.method == "HEAD" {
            receiveOfHead(response, request, requested, now)
        } else if (200..<400).contains(response.status) {
            // Section 4.4.
            entries.removeAll { $0.path == request.path || $0.path == response.location }
        }
        return .passed
    }

    private mutating func receiveOfGet(
        _ response: MeantResponse, _ request: MeantRequest, isConfirming: Bool, _ requested: Int64, _ now: Int64
    ) -> Outcome {
        if let index = index(for: request) {
            if isConfirming, response.status == 304 { return confirm(index, by: response, request, requested, now) }
            if let stale = standIn(for: response.status, at: index, request, now) { return .served(stale) }
        }
        guard mayStore(response, to: request) else { return .passed }
        var entry = Entry(
            path: request.path, response: response, requestTime: requested, responseTime: now,
            selecting: Self.selecting(response, request),
            bytes: response.part.map { $0.lowerBound..<$0.upperBound + 1 } ?? 0..<response.complete)
        entry.response.date = entry.response.date ?? now
        // RFC 9110 section 15.3.7.3: a complete body is a 200, even if it came in parts.
        if response.status == 206, entry.bytes == 0..<response.complete { entry.response.status = 200 }
        if let index = index(for: request) {
            if response.status == 206, let combined = combine(entries[index], with: entry) { entry = combined }
            entries.remove(at: index)
        }
        entries.insert(entry, at: 0)
        return .passed
    }

    /// RFC 5861 section 4.
    private func standIn(
        for status: Int, at index: Int, _ request: MeantRequest, _ now: Int64
    ) -> Outcome.Served? {
        let entry = entries[index]
        let (asks, says) = (request.effectiveControl, entry.response.effectiveControl)
        let freshness = freshness(entry)
        let most = [says.seconds("stale-if-error"), asks.seconds("stale-if-error")].compactMap { $0 }.max()
        guard [500, 502, 503, 504].contains(status), let most, freshness.staleness(now) < most,
            !freshness.isOfTheFuture(now), maySendStale(says), !says.has("no-cache"), !asks.has("no-cache"),
            !asks.has("no-store"), !request.ifMatch,
            !request.hasAuthorization || Self.allowsAuthorization(entry.response)
        else { return nil }
        return served(entry, to: request, at: now)
    }

    /// Section 4.3.4.
    private mutating func confirm(
        _ index: Int, by update: MeantResponse, _ request: MeantRequest, _ requested: Int64, _ now: Int64
    ) -> Outcome {
        let stored = entries[index].response
        let isSame =
            if let tag = update.tag {
                tag.isWeak ? stored.tag?.value == tag.value : stored.tag == tag
            } else if let date = update.lastModified {
                stored.lastModified == date
            } else {
                true
            }
        guard isSame else {
            entries.remove(at: index)
            return .again
        }
        let entry = refreshed(entries[index], by: update, request, requested, now)
        entries.remove(at: index)
        if mayStore(entry.response, to: request) { entries.insert(entry, at: 0) }
        return served(entry, to: request, at: now).map { .served($0) } ?? .again
    }

    /// Section 3.2. Here: Content-Type stays, which rules have judged; Set-Cookie isn't stored.
    private func refreshed(
        _ entry: Entry, by update: MeantResponse, _ request: MeantRequest, _ requested: Int64, _ now: Int64
    ) -> Entry {
        var entry = entry
        if update.control != nil { entry.response.control = update.control }
        if update.isPragma { entry.response.isPragma = true }
        if !update.expires.isEmpty { entry.response.expires = update.expires }
        if update.lastModified != nil { entry.response.lastModified = update.lastModified }
        if update.tag != nil { entry.response.tag = update.tag }
        if update.vary != nil { entry.response.vary = update.vary }
        entry.response.location = update.location ?? entry.response.location
        entry.response.id = update.id
        // Here: those of the old response are dropped with it.
        entry.response.age = update.age
        entry.response.date = update.date ?? now
        entry.requestTime = requested
        entry.responseTime = now
        entry.selecting = Self.selecting(entry.response, request)
        return entry
    }

    /// Section 4.3.5. Here: without a validator HEAD makes nothing fresher; a response that it outdates is dropped.
    private mutating func receiveOfHead(
        _ head: MeantResponse, _ request: MeantRequest, _ requested: Int64, _ now: Int64
    ) {
        guard head.status == 200, let index = index(for: request),
            [200, 206].contains(entries[index].response.status)
        else { return }
        let stored = entries[index].response
        if head.tag != nil && head.tag != stored.tag
            || head.lastModified != nil && head.lastModified != stored.lastModified
            || head.complete != stored.complete
        {
            entries.remove(at: index)
        } else if head.hasValidator {
            entries[index] = refreshed(entries[index], by: head, request, requested, now)
        }
    }

    var kept: [Kept] {
        entries.map { entry in
            let response = entry.response
            return Kept(
                path: entry.path, status: response.status, id: response.id, date: response.date, age: response.age,
                lastModified: response.lastModified, tag: response.tag?.text, type: response.type,
                requested: entry.requestTime, received: entry.responseTime, bytes: entry.bytes)
        }
    }
}
