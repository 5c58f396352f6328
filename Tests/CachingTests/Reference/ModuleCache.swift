import PinproxyHTTPWire

@testable import PinproxyCaching

/// A simple cache by the module's rules, as a session uses them, without I/O.
struct ModuleCache {
    private struct Entry {
        let path: String
        let head: OwnedResponse
        let traits: CachedTraits
        let freshness: Freshness
        let times: ResponseTimes
        let selected: SelectedFields
        let bodyLength: UInt64

        init?(
            _ path: String, _ head: OwnedResponse?, _ times: ResponseTimes, for request: OwnedRequest,
            bodyLength: UInt64,
            isShared: Bool
        ) {
            guard let head else { return nil }
            (self.path, self.head, self.times, self.bodyLength) = (path, head, times, bodyLength)
            traits = CachedTraits(head.view)
            freshness = Freshness(traits, times, isShared: isShared)
            selected = SelectedFields(traits.vary.list, of: request.view)
        }

        func matches(_ request: OwnedRequest, _ path: String) -> Bool {
            self.path == path && selected == SelectedFields(traits.vary.list, of: request.view)
        }
    }

    let isShared: Bool
    private var entries: [Entry] = []

    init(isShared: Bool) { self.isShared = isShared }

    private func read(_ request: MeantRequest) throws -> (OwnedRequest, CacheRequest, Int?) {
        let owned = try OwnedRequest(Array(request.text.utf8))
        let asked = CacheRequest(owned.view)
        return (owned, asked, entries.firstIndex { $0.matches(owned, request.path) })
    }

    func outcome(of request: MeantRequest, at now: Int64) throws -> Outcome {
        let (_, asked, index) = try read(request)
        guard let index, asked.method == .get || asked.method == .head,
            !asked.hasCredentials || entries[index].traits.allowsCredentials
        else {
            return CacheChoice.miss(asked, .uriMiss) == .unavailable ? .unavailable : .forwarded(validators: [])
        }
        let entry = entries[index]
        switch CacheChoice(entry.traits, entry.freshness, isShared: isShared).answer(to: asked, at: now) {
        case .fresh, .stale:
            if let served = try served(entry, to: asked, at: now) { return .served(served) }
            return CacheChoice.miss(asked, .partial) == .unavailable ? .unavailable : .forwarded(validators: [])
        case .unavailable: return .unavailable
        case .ask:
            guard asked.method == .get, !asked.asksForState, !asked.directives.flags.contains(.noStore),
                try served(entry, to: asked, at: now) != nil
            else { return .forwarded(validators: []) }
            var validators: [String] = []
            for edit in Confirmation.edits(for: entry.head).list {
                if case .set(let value) = edit.action { validators.append("\(edit.name): \(value)") }
            }
            return .forwarded(validators: validators)
        }
    }

    private func served(_ entry: Entry, to asked: CacheRequest, at now: Int64) throws -> Outcome.Served? {
        let age = entry.freshness.age(at: now)
        func served(_ head: OwnedResponse?, _ bytes: Range<UInt64>?) throws -> Outcome.Served {
            guard let head else { throw WireError(.statusLine, at: 0) }
            let bytes = bytes.map { Int($0.lowerBound)..<Int($0.upperBound) }
            return Outcome.Served(status: head.head.status, id: entry.head.number("x-id"), age: age, bytes: bytes)
        }
        if ClientCondition.isMet(asked, by: entry.traits) { return try served(entry.head.notModified(), nil) }
        switch RangeAnswer(asked, of: entry.traits, bodyLength: entry.bodyLength) {
        case .ask: return nil
        case .whole: return try served(entry.head, asked.method == .head ? nil : 0..<entry.bodyLength)
        case .unsatisfied(let complete): return try served(entry.head.unsatisfied(of: complete), nil)
        case .part(let part): return try served(entry.head.part(part.bytes, of: part.complete), part.bytes)
        }
    }

    mutating func receive(
        _ response: MeantResponse, to request: MeantRequest, with validators: [String], requested: Int64, at now: Int64
    ) throws -> Outcome {
        let (owned, asked, index) = try read(request)
        let head = try OwnedResponse(Array(response.text.utf8))
        let times = ResponseTimes(requested: requested, received: now)
        if asked.method == .head {
            if let index { try noteHead(head, for: index, owned, times) }
            return .passed
        }
        guard asked.method == .get else {
            let url = try RequestURL("http://a.test\(request.path)")
            let ended = Invalidation.urls(after: asked.method, of: url, head.view).map {
                String(decoding: $0.target, as: UTF8.self)
            }
            entries.removeAll { ended.contains($0.path) }
            return .passed
        }
        if let index {
            let entry = entries[index]
            if response.status == 304, !validators.isEmpty { return try confirm(index, by: head, owned, asked, times) }
            let choice = CacheChoice(entry.traits, entry.freshness, isShared: isShared)
            if [500, 502, 503, 504].contains(response.status), !asked.hasCredentials || entry.traits.allowsCredentials,
                choice.standsInForError(asked, at: now), let served = try served(entry, to: asked, at: now)
            {
                return .served(served)
            }
        }
        guard mayStore(CachedTraits(head.view), asked) else { return .passed }
        let length = UInt64(response.bodyLength)
        var stored = head.stored(length: Int(length), received: now)
        var bodyLength = length
        if response.status == 206, let part = StoredPart(CachedTraits(head.view), bodyLength: length) {
            stored = stored.flatMap(part.head)
            if let old = index.map({ entries[$0] }),
                let combined = StoredPart(old.traits, bodyLength: old.bodyLength)?.combined(with: part)
            {
                stored = combined.head(of: old.head, with: head.view, received: now)
                bodyLength = combined.part.bytes.upperBound - combined.part.bytes.lowerBound
            }
        }
        if let index { entries.remove(at: index) }
        let new = Entry(request.path, stored, times, for: owned, bodyLength: bodyLength, isShared: isShared)
        if let new { entries.insert(new, at: 0) }
        return .passed
    }

    private func mayStore(_ traits: CachedTraits, _ asked: CacheRequest) -> Bool {
        Storability.refusal(of: traits, to: asked, isShared: isShared, length: nil, mostLength: .max) == nil
    }

    private mutating func confirm(
        _ index: Int, by update: OwnedResponse, _ request: OwnedRequest, _ asked: CacheRequest, _ times: ResponseTimes
    ) throws -> Outcome {
        let old = entries.remove(at: index)
        guard Confirmation.confirms(CachedTraits(update.view), old.traits),
            let new = refreshed(old, by: update, request, times)
        else { return .again }
        if mayStore(new.traits, asked) { entries.insert(new, at: 0) }
        return try served(new, to: asked, at: times.received).map { .served($0) } ?? .again
    }

    private func refreshed(
        _ old: Entry, by update: OwnedResponse, _ request: OwnedRequest, _ times: ResponseTimes
    ) -> Entry? {
        Entry(
            old.path, Confirmation.updated(old.head, by: update.view, received: times.received), times, for: request,
            bodyLength: old.bodyLength, isShared: isShared)
    }

    private mutating func noteHead(
        _ head: OwnedResponse, for index: Int, _ request: OwnedRequest, _ times: ResponseTimes
    ) throws {
        let old = entries[index]
        let complete = StoredPart(old.traits, bodyLength: old.bodyLength)?.complete ?? old.bodyLength
        switch Invalidation.effect(ofHead: head.view, on: old.traits, complete: complete) {
        case .nothing: break
        case .outdates: entries.remove(at: index)
        case .updates: if let new = refreshed(old, by: head, request, times) { entries[index] = new }
        }
    }

    var kept: [Kept] {
        entries.map { entry in
            let part = StoredPart(entry.traits, bodyLength: entry.bodyLength)?.bytes ?? 0..<entry.bodyLength
            let view = entry.head.view
            return Kept(
                path: entry.path, status: entry.traits.status, id: entry.head.number("x-id"), date: entry.traits.date,
                age: view.head.first(.age) == nil ? nil : entry.traits.age, lastModified: entry.traits.lastModified,
                tag: entry.traits.etag.map { String(decoding: $0.text, as: UTF8.self) },
                type: view.head.first(.contentType).map { $0.text(in: view.bytes) }, requested: entry.times.requested,
                received: entry.times.received, bytes: Int(part.lowerBound)..<Int(part.upperBound))
        }
    }
}

extension OwnedResponse {
    /// -1 without the field.
    fileprivate func number(_ name: String) -> Int {
        let view = view
        for field in view.head.fields where view.bytes.equals(field.name, ignoringCase: name) {
            return Int(field.value.text(in: view.bytes)) ?? -1
        }
        return -1
    }
}
