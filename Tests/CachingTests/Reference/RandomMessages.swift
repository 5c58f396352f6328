/// Random requests and responses, written in equivalent ways.
struct RandomMessages {
    private var random: Seeded
    private var count = 0

    private static let asked = [
        "no-cache", "no-store", "max-age", "max-age", "max-stale", "max-stale", "min-fresh", "only-if-cached",
        "stale-if-error", "unknown",
    ]
    private static let said = [
        "max-age", "max-age", "max-age", "max-age", "s-maxage", "no-cache", "no-store", "public", "private",
        "must-revalidate", "proxy-revalidate", "must-understand", "immutable", "stale-while-revalidate",
        "stale-if-error", "stale-if-error", "unknown",
    ]

    private static let plain: Set = ["no-cache", "no-store", "only-if-cached", "unknown"]
    private static let lifetimes: Set = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"]

    init(seed: UInt64) { random = Seeded(state: seed) }

    // MARK: Random choices

    private mutating func isOne(in most: UInt64) -> Bool { random.next() % most == 0 }
    mutating func one<Element>(of list: [Element]) -> Element { list[Int(random.next() % UInt64(list.count))] }
    private mutating func seconds() -> Int64 { one(of: [0, 1, 5, 10, 60, 100]) }

    /// Seconds between two requests; negative: the clock was set back.
    mutating func step() -> Int64 { one(of: [0, 0, 1, 4, 5, 6, 10, 50, 100, 100_000, -1, -5, -100]) }

    // MARK: Requests

    mutating func request(at now: Int64) -> MeantRequest {
        var request = MeantRequest()
        request.method = one(of: ["GET", "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST", "DELETE"])
        request.path = one(of: ["/a", "/a", "/a", "/b"])
        if isOne(in: 3) { addControl(to: &request) }
        if isOne(in: 12) {
            request.isPragma = true
            request.lines.append("Pragma: no-cache")
        }
        if isOne(in: 8) {
            request.hasAuthorization = true
            request.lines.append("Authorization: Basic YTpi")
        }
        addSelecting(to: &request)
        if isOne(in: 4) { addRange(to: &request, at: now) }
        if isOne(in: 5) { addCondition(to: &request, at: now) }
        if isOne(in: 20) {
            request.ifMatch = true
            request.lines.append("If-Match: \"1\"")
        }
        return request
    }

    private mutating func addControl(to request: inout MeantRequest) {
        var control = Control()
        let pieces = (0...one(of: [0, 0, 1])).map { _ in
            let name = one(of: Self.asked)
            let takesSeconds = !Self.plain.contains(name)
            return directive(name, takesSeconds: takesSeconds, isOptional: name == "max-stale", into: &control)
        }
        // Of several min-fresh the strictest counts; the model takes the smallest of all.
        if control.said["min-fresh"]?.count ?? 0 > 1 { return }
        if control.said["min-fresh"]?.contains(where: { Int($0 ?? "x") == nil }) == true { return }
        request.control = control
        request.lines.append("Cache-Control: \(pieces.joined(separator: one(of: [", ", ",", " ,, "])))")
    }

    private mutating func directive(
        _ name: String, takesSeconds: Bool, isOptional: Bool = false, into control: inout Control
    ) -> String {
        let written = one(of: [name, name, name.uppercased()])
        guard takesSeconds, !isOptional || !isOne(in: 3) else {
            control.said[name, default: []].append(nil)
            return written
        }
        if isOne(in: 15) {
            let bad = one(of: ["x", "1.5", "-1", "'5'", "5 6", "+5", ""])
            control.said[name, default: []].append("?")
            return "\(written)=\(bad)"
        }
        let seconds = isOne(in: 20) ? "99999999999999999999" : "\(self.seconds())"
        control.said[name, default: []].append(seconds)
        return "\(written)\(one(of: ["=\(seconds)", "=\"\(seconds)\"", "=00\(seconds)"]))"
    }

    private mutating func addSelecting(to request: inout MeantRequest) {
        if isOne(in: 2) {
            request.accept = one(of: ["x,y", "y"])
            if request.accept == "y" {
                request.lines.append(one(of: ["Accept: y", "accept:  y "]))
            } else {
                request.lines += one(of: [["Accept: x,y"], ["ACCEPT: x , y"], ["Accept: x", "Accept: y"]])
            }
        }
        if isOne(in: 2) {
            request.other = one(of: ["1", "2"])
            request.lines.append("X-A: \(request.other ?? "")")
        }
    }

    private mutating func addRange(to request: inout MeantRequest, at now: Int64) {
        let (wish, text): (MeantRequest.Wish, String) = one(of: [
            (.bytes(0, 4), "bytes=0-4"), (.bytes(5, nil), "bytes=5-"), (.bytes(3, 99), "bytes=3-99"),
            (.bytes(10, nil), "bytes=10-"), (.suffix(3), "bytes=-3"), (.suffix(0), "bytes=-0"),
            (.suffix(99), "bytes=-99"),
            (.bytes(2, 6), "BYTES=2-6"), (.other, "bytes=0-1,4-5"), (.other, "items=1-2"), (.other, "bytes=5-4"),
        ])
        request.range = wish
        request.lines.append("Range: \(text)")
        guard isOne(in: 3) else { return }
        switch one(of: [0, 0, 1, 2]) {
        case 0:
            let tag = tag()
            request.ifRange = .tag(tag)
            request.lines.append("If-Range: \(tag.text)")
        case 1:
            let date = now - seconds()
            request.ifRange = .date(date)
            request.lines.append("If-Range: \(Calendar.text(date))")
        default:
            request.ifRange = .malformed
            request.lines.append("If-Range: 1")
        }
    }

    private mutating func addCondition(to request: inout MeantRequest, at now: Int64) {
        if !isOne(in: 3) {
            let tags = [tag(), tag()]
            let list = tags.map(\.text).joined(separator: one(of: [",", " , "]))
            let (meant, text): (MeantRequest.Tags, String) = one(of: [
                (.list(tags), list), (.list(tags), list), (.any, "*"), (.malformed, "1, \(list)"),
            ])
            request.ifNoneMatch = meant
            request.lines.append("If-None-Match: \(text)")
        }
        if isOne(in: 2) {
            let date = now - seconds()
            if isOne(in: 5) {
                request.lines.append("If-Modified-Since: soon")
            } else {
                request.ifModifiedSince = date
                request.lines.append("If-Modified-Since: \(Calendar.text(date))")
            }
        }
    }

    private mutating func tag() -> Tag { Tag(isWeak: isOne(in: 4), value: one(of: ["1", "1", "2", "a,b"])) }

    // MARK: Responses

    mutating func response(to request: MeantRequest, confirming validators: [String], at now: Int64) -> MeantResponse {
        count += 1
        var response = MeantResponse()
        response.id = count
        response.status = status(for: request, isConfirming: !validators.isEmpty)
        response.lines.append("X-Id: \(count)")
        if !isOne(in: 4) { addControl(to: &response) }
        if isOne(in: 15) {
            response.isPragma = true
            response.lines.append("Pragma: no-cache")
        }
        addTimes(to: &response, at: now)
        if !isOne(in: 3) {
            let tag = tag()
            response.tag = tag
            response.lines.append("ETag: \(tag.text)")
        } else if isOne(in: 6) {
            response.lines.append("ETag: 1")
        }
        if isOne(in: 4) { addVary(to: &response) }
        if isOne(in: 10) {
            response.setsCookie = true
            response.lines.append("Set-Cookie: a=b")
        }
        if isOne(in: 2) {
            response.type = one(of: ["text/html", "image/png"])
            response.lines.append("Content-Type: \(response.type ?? "")")
        }
        if isOne(in: 6) {
            let (location, path) = one(of: [("/b", "/b"), ("http://a.test/a", "/a"), ("https://a.test/b", nil)])
            response.location = path
            response.lines.append("\(one(of: ["Location", "Content-Location"])): \(location)")
        }
        addLength(to: &response, for: request)
        return response
    }

    private mutating func status(for request: MeantRequest, isConfirming: Bool) -> Int {
        if isConfirming, isOne(in: 2) { return 304 }
        // A 206 answers one range of the ten bytes.
        if request.method == "GET", !isConfirming, let range = request.range, range.part != nil, !isOne(in: 3) {
            return 206
        }
        return isOne(in: 3) ? one(of: [203, 204, 299, 301, 302, 307, 404, 410, 429, 500, 503, 503]) : 200
    }

    private mutating func addLength(to response: inout MeantResponse, for request: MeantRequest) {
        switch response.status {
        case 206:
            guard let part = request.range?.part else { return }
            response.part = part
            response.lines.append("Content-Range: bytes \(part.lowerBound)-\(part.upperBound)/\(response.complete)")
            response.lines.append("Content-Length: \(part.count)")
        case 204, 304: break
        default: response.lines.append("Content-Length: \(response.complete)")
        }
    }

    private mutating func addControl(to response: inout MeantResponse) {
        var control = Control()
        let pieces = (0...one(of: [0, 0, 1, 2])).map { _ in
            let name = one(of: Self.said)
            let takesSeconds = Self.lifetimes.contains(name)
            if ["no-cache", "private"].contains(name), isOne(in: 3) {
                control.said[name, default: []].append("x")
                return "\(name)=\"x-a, max-age=5\""
            }
            return directive(name, takesSeconds: takesSeconds, into: &control)
        }
        response.control = control
        if isOne(in: 3) {
            response.lines += pieces.map { "Cache-Control: \($0)" }
        } else {
            response.lines.append("cache-control: \(pieces.joined(separator: one(of: [", ", ",", " , ,"])))")
        }
        if isOne(in: 8) { response.lines.append("CDN-Cache-Control: max-age=1000") }
    }

    private mutating func addTimes(to response: inout MeantResponse, at now: Int64) {
        if !isOne(in: 6) {
            let date = now + one(of: [0, 0, 0, -1, -5, -100, -1_000_000, 50])
            response.date = date
            response.lines.append("Date: \(Calendar.text(date))")
        } else if isOne(in: 2) {
            response.lines.append("Date: today")
        }
        if isOne(in: 5) {
            let (age, text): (Int64, String) = one(of: [
                (0, "0"), (5, "5"), (60, "60, 1"), (0, "old"), (0, "-5"), (0, "7;x"), (1 << 31, "99999999999"),
            ])
            response.age = age
            response.lines.append("Age: \(text)")
        }
        for _ in 0..<one(of: [0, 0, 0, 1, 1, 2]) {
            if isOne(in: 4) {
                response.expires.append(nil)
                response.lines.append("Expires: \(one(of: ["0", "-1", "Thu, 01 Jan 1970"]))")
            } else {
                let date = isOne(in: 10) ? 253_402_300_799 : now + one(of: [0, 1, 5, 60, 100, -100])
                response.expires.append(date)
                response.lines.append("Expires: \(Calendar.text(date))")
            }
        }
        if isOne(in: 2) {
            let date = now - one(of: [10, 59, 60, 100, 1000, 5_000_000, -100])
            response.lastModified = date
            response.lines.append("Last-Modified: \(Calendar.text(date))")
        }
    }

    private static let many = (0..<100).map { "x-\($0)" }.joined(separator: ",")

    private mutating func addVary(to response: inout MeantResponse) {
        let (vary, lines): (MeantResponse.Vary, [String]) = one(of: [
            (.names(["accept"]), ["Vary: Accept"]), (.names(["x-a"]), ["Vary: X-A, x-a"]),
            (.names(["accept", "x-a"]), ["Vary: X-A", "Vary: accept"]), (.anything, ["Vary: accept, *"]),
            (.anything, ["Vary: \(Self.many)"]), (.anything, ["Vary: accept x-a"]), (.names([]), ["Vary: ,"]),
        ])
        response.vary = vary
        response.lines += lines
    }
}

extension MeantRequest.Wish {
    /// For a representation of ten bytes; nil: the answer isn't a single part.
    fileprivate var part: ClosedRange<Int>? {
        let length = MeantResponse.length
        switch self {
        case .bytes(let first, let last): return first < length ? first...min(last ?? length - 1, length - 1) : nil
        case .suffix(let count): return count > 0 ? max(0, length - count)...length - 1 : nil
        case .other: return nil
        }
    }
}

/// The same numbers for the same seed (SplitMix64).
struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return word ^ word >> 31
    }
}
