import PinproxyCaching
import PinproxyHTTPWire

/// A request's and a response's head, with their fields as a cache reads them.
enum CacheFields {
    private static let arrival: Int64 = 1_800_000_000

    /// The response follows the request. Three choices: the kind of cache, the time of the next request, and what is
    /// stored.
    static func fields(_ bytes: [UInt8]) {
        var choices = Choices(bytes, count: 3)
        let (isShared, second, third) = (choices.flag(), choices.byte(), choices.byte())
        lists(choices.input)
        var parser = HeadParser(limit: 4096)
        var head = RequestHead()
        guard case .complete = parser.parseRequest(choices.input.span, into: &head) else { return }
        let length = Int(head.length)
        guard let request = try? OwnedRequest(Array(choices.input[..<length])),
            let response = try? OwnedResponse(Array(choices.input[length...])), response.head.status >= 200
        else { return }
        let later: [Int64] = [0, 1, 5, 60, 86_400, 1 << 31, 1 << 40, -1, -100_000]
        let now = arrival + later[Int(second) % later.count]
        let bodyLength = UInt64(third)
        use(response, for: request, isShared: isShared, at: now, bodyLength)
        keep(response, for: request, bodyLength)
    }

    private static func lists(_ bytes: [UInt8]) {
        if let tags = EntityTag.list(bytes.span) {
            let text = Array(tags.map(\.text).joined(separator: Array(", ".utf8)))
            require(EntityTag.list(text.span) == tags, "tags read as themselves")
        }
        var once = CacheDirectives()
        once.add(bytes.span)
        var twice = once
        twice.add(bytes.span)
        require(once == twice, "directives that are repeated mean the same")
        var stricter = once
        stricter.add(Array("no-store, max-age=1".utf8).span)
        require(stricter.flags.isSuperset(of: once.flags.union(.noStore)), "no directive takes another one away")
        require(stricter.maxAge ?? 2 <= min(once.maxAge ?? 1, 1), "the shortest lifetime counts")
        for seconds in [once.maxAge, once.sharedMaxAge, once.minFresh, once.maxStale, once.staleIfError] {
            require(0...CacheDirectives.mostSeconds ~= seconds ?? 0, "seconds are bounded")
        }
        var vary = VaryNames.none
        vary.add(bytes.span)
        if case .names(let names) = vary {
            require(names == Array(Set(names)).sorted() && names.count <= 32, "names are sorted, few, each once")
        }
    }

    private static func use(
        _ response: OwnedResponse, for request: OwnedRequest, isShared: Bool, at now: Int64, _ bodyLength: UInt64
    ) {
        let traits = CachedTraits(response.view)
        let asked = CacheRequest(request.view)
        let times = ResponseTimes(requested: arrival - 1, received: arrival)
        let freshness = Freshness(traits, times, isShared: isShared)
        require(0...CacheDirectives.mostSeconds ~= freshness.lifetime, "a lifetime is bounded")
        require(freshness.age(at: now) >= 0 && freshness.rest(at: now) <= freshness.lifetime, "an age isn't negative")
        require(freshness.rest(at: now + 1) <= freshness.rest(at: now) || now < arrival, "time makes nothing fresher")
        let answer = CacheChoice(traits, freshness, isShared: isShared).answer(to: asked, at: now)
        switch answer {
        case .fresh, .stale:
            require(asked.method == .get || asked.method == .head, "only GET and HEAD are answered")
            require(!traits.directives.flags.contains(.noCache) && now >= arrival, "no-cache is confirmed first")
            require(
                asked.directives.flags.isDisjoint(with: [.noCache, .noStore]), "a client that wants the origin gets it")
            if answer == .fresh {
                require(freshness.rest(at: now) > 0, "what is fresh has time left")
            } else {
                require(!traits.directives.flags.contains(.mustRevalidate), "must-revalidate is never stale")
            }
        case .ask, .unavailable: break
        }
        var status = CacheStatus(answer)
        status.rest = freshness.rest(at: now)
        require(status.text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }, "Cache-Status is a field's value")
        let refusal = Storability.refusal(
            of: traits, to: asked, isShared: isShared, length: bodyLength, mostLength: 200)
        if refusal == nil {
            let forbids =
                traits.directives.flags.contains(.noStore) && !traits.directives.flags.contains(.mustUnderstand)
            require(!forbids && !asked.directives.flags.contains(.noStore), "no-store stores nothing")
            require(!isShared || !traits.setsCookie, "no cookie is stored for everybody")
            require(traits.vary != .anything && bodyLength <= 200, "what matches nothing isn't stored")
        }
        if case .names(let names) = traits.vary {
            let selected = SelectedFields(names, of: request.view)
            require(selected.values.count == names.count, "each name has a value")
            require(selected == SelectedFields(names, of: OwnedRequest(request.view).view), "a request matches itself")
        }
    }

    /// A response that is stored and served.
    private static func keep(_ response: OwnedResponse, for request: OwnedRequest, _ bodyLength: UInt64) {
        guard let stored = response.stored(length: Int(bodyLength), received: arrival) else {
            return require(response.head.fields.count > HeadParser.fieldLimit - 2, "what came can be stored")
        }
        let (traits, asked) = (CachedTraits(stored.view), CacheRequest(request.view))
        require(traits.date != nil && !traits.setsCookie, "what is stored has a date, and no cookie")
        require(traits.directives == CachedTraits(response.view).directives, "what is stored says the same")
        require(stored.notModified()?.head.status == 304, "304 can be made of what is stored")
        switch RangeAnswer(asked, of: traits, bodyLength: bodyLength) {
        case .whole, .ask: break
        case .unsatisfied(let complete):
            require(stored.unsatisfied(of: complete)?.head.status == 416, "416 can be made of what is stored")
        case .part(let part):
            let length = part.bytes.upperBound - part.bytes.lowerBound
            require(length > 0 && part.offset + length <= bodyLength, "a part is within the body")
            guard let head = stored.part(part.bytes, of: part.complete) else {
                return require(false, "206 can be made of what is stored")
            }
            require(head.head.bodyLength == .known(length), "a part says how long it is")
            require(head.head.defect(answering: asked.part, in: head.view.bytes) == nil, "a part is what was asked for")
        }
        guard let updated = Confirmation.updated(stored, by: response.view, received: arrival) else {
            return require(false, "what is stored can be updated by itself")
        }
        let new = CachedTraits(updated.view)
        require(new.directives == traits.directives && new.etag == traits.etag, "what confirms changes nothing")
        require(updated.head.bodyLength == stored.head.bodyLength, "what confirms says nothing of the body")
        require(Confirmation.confirms(traits, new) || traits.etag == nil, "a response confirms itself")
        _ = Confirmation.edits(for: stored)
        if let part = StoredPart(traits, bodyLength: bodyLength) {
            require(part.combined(with: part)?.part == part, "a part and itself are the part")
            require(part.head(of: stored) != nil || part.bytes.isEmpty, "a part has a head")
        }
        if let url = try? RequestURL("https://a.test/x") {
            for other in Invalidation.urls(after: asked.method, of: url, response.view) {
                require(other.origin == url.origin, "no other origin's response is invalidated")
            }
            _ = Invalidation.effect(ofHead: response.view, on: traits, complete: bodyLength)
        }
    }
}
