/// Messages as lines, with their meaning. The reference model knows only the meaning.
struct Tag: Equatable {
    var isWeak: Bool
    var value: String

    var text: String { "\(isWeak ? "W/" : "")\"\(value)\"" }
}

/// Directives by name, each with its arguments; nil: without one.
struct Control: Equatable {
    var said: [String: [String?]] = [:]

    func has(_ name: String) -> Bool { said[name] != nil }

    /// RFC 9111 sections 1.2.2 and 4.2.1: the smallest of several; an unreadable one is 0.
    func seconds(_ name: String) -> Int128? {
        said[name]?.map { argument in
            guard let argument, !argument.isEmpty, argument.allSatisfy({ $0.isASCII && $0.isNumber }) else { return 0 }
            return min(Int128(argument) ?? 1 << 31, 1 << 31)
        }.min()
    }
}

struct MeantRequest {
    enum Wish: Equatable {
        case bytes(Int, Int?)
        case suffix(Int)
        /// Several, or in another unit.
        case other
    }

    enum Tags: Equatable {
        case any
        case list([Tag])
        case malformed
    }

    enum SameVersion: Equatable {
        case tag(Tag)
        case date(Int64)
        case malformed
    }

    var method = "GET"
    var path = "/a"
    var lines: [String] = []
    var control: Control?
    var isPragma = false
    var hasAuthorization = false
    var accept: String?
    var other: String?
    var range: Wish?
    var ifRange: SameVersion?
    var ifNoneMatch: Tags?
    var ifModifiedSince: Int64?
    var ifMatch = false

    var text: String {
        (["\(method) \(path) HTTP/1.1", "Host: a.test"] + lines + ["", ""]).joined(separator: "\r\n")
    }
}

struct MeantResponse {
    enum Vary: Equatable {
        case names([String])
        case anything
    }

    var status = 200
    var lines: [String] = []
    /// Numbers the responses of a sequence, to distinguish them.
    var id = 0
    var control: Control?
    var isPragma = false
    var date: Int64?
    var age: Int64?
    /// Nil: not a date.
    var expires: [Int64?] = []
    var lastModified: Int64?
    var tag: Tag?
    var vary: Vary?
    var setsCookie = false
    var type: String?
    var location: String?
    /// Of a 206.
    var part: ClosedRange<Int>?
    /// Bytes of the whole representation.
    var complete = Self.length

    static let length = 10

    var bodyLength: Int { part?.count ?? complete }

    var text: String {
        (["HTTP/1.1 \(status) X"] + lines + ["", ""]).joined(separator: "\r\n")
    }
}

/// What a cache does with a request.
enum Outcome: Equatable {
    case served(Served)
    /// With the validators that it adds for its own response; empty: the request is unchanged.
    case forwarded(validators: [String])
    /// 504.
    case unavailable
    /// The origin's response goes to the client.
    case passed
    /// The request has to be sent again: a 304 was about another response.
    case again

    struct Served: Equatable {
        var status: Int
        var id: Int
        var age: Int64
        var bytes: Range<Int>?
    }
}

/// A stored response, in the parts that a test can observe.
struct Kept: Equatable {
    var path: String
    var status: Int
    var id: Int
    var date: Int64?
    var age: Int64?
    var lastModified: Int64?
    var tag: String?
    var type: String?
    var requested: Int64
    var received: Int64
    var bytes: Range<Int>
}
