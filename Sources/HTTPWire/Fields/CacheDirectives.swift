/// The directives of Cache-Control (RFC 9111 section 5.2). Unknown directives are ignored.
package struct CacheDirectives: Sendable, Equatable {
    package struct Flags: OptionSet, Sendable {
        package let rawValue: UInt16
        package init(rawValue: UInt16) { self.rawValue = rawValue }

        package static let noStore = Flags(rawValue: 1)
        /// With field names too: it then counts for the whole response, as section 5.2.2.4 allows.
        package static let noCache = Flags(rawValue: 2)
        package static let isPublic = Flags(rawValue: 4)
        /// With field names too (section 5.2.2.7).
        package static let isPrivate = Flags(rawValue: 8)
        package static let mustRevalidate = Flags(rawValue: 16)
        package static let proxyRevalidate = Flags(rawValue: 32)
        package static let mustUnderstand = Flags(rawValue: 64)
        package static let immutable = Flags(rawValue: 128)
        package static let onlyIfCached = Flags(rawValue: 256)
    }

    /// The value for numbers of seconds that are too large (RFC 9111 section 1.2.2).
    package static let mostSeconds: Int64 = 1 << 31

    package var flags: Flags = []
    // Seconds; nil: not said. The strictest of several counts. A lifetime that can't be read is 0: the response is
    // stale (section 4.2.1). A permission to be stale that can't be read isn't given.
    package var maxAge: Int64?
    package var sharedMaxAge: Int64?
    /// One that can't be read: ``mostSeconds``.
    package var minFresh: Int64?
    /// Without a value: ``mostSeconds``.
    package var maxStale: Int64?
    /// RFC 5861 section 3.
    package var staleWhileRevalidate: Int64?
    /// RFC 5861 section 4.
    package var staleIfError: Int64?
    /// Whether the field has a directive, even an unknown one.
    package var isPresent = false

    package init() {}

    /// Adds the value of one field line.
    package mutating func add(_ value: Span<UInt8>) {
        isPresent = true
        var scanner = ElementScanner(value)
        while !scanner.isAtEnd {
            guard let (name, argument) = scanner.directive(in: value) else { continue }
            add(name, argument)
        }
    }

    private mutating func add(_ name: String, _ argument: DirectiveArgument) {
        let isPlain = argument == .none
        switch name {
        case "no-store": flags.insert(.noStore)
        case "no-cache": flags.insert(.noCache)
        case "private": flags.insert(.isPrivate)
        case "must-revalidate": flags.insert(.mustRevalidate)
        case "proxy-revalidate": flags.insert(.proxyRevalidate)
        case "only-if-cached": flags.insert(.onlyIfCached)
        // A permission counts only if it is well-formed.
        case "public": if isPlain { flags.insert(.isPublic) }
        case "must-understand": if isPlain { flags.insert(.mustUnderstand) }
        case "immutable": if isPlain { flags.insert(.immutable) }
        case "max-age": maxAge = Self.least(maxAge, argument.seconds ?? 0)
        case "s-maxage": sharedMaxAge = Self.least(sharedMaxAge, argument.seconds ?? 0)
        case "min-fresh": minFresh = max(minFresh ?? 0, argument.seconds ?? Self.mostSeconds)
        case "max-stale": maxStale = Self.least(maxStale, isPlain ? Self.mostSeconds : argument.seconds ?? 0)
        case "stale-while-revalidate":
            staleWhileRevalidate = Self.least(staleWhileRevalidate, argument.seconds ?? 0)
        case "stale-if-error": staleIfError = Self.least(staleIfError, argument.seconds ?? 0)
        default: break
        }
    }

    private static func least(_ known: Int64?, _ new: Int64) -> Int64 { min(known ?? new, new) }

    /// delta-seconds (RFC 9111 section 1.2.2); nil: something else.
    package static func seconds(_ text: [UInt8]) -> Int64? {
        guard !text.isEmpty, text.allSatisfy(\.isDigit) else { return nil }
        return text.reduce(0 as Int64) { min($0 * 10 + Int64($1 & 0x0F), mostSeconds) }
    }
}

extension DirectiveArgument {
    fileprivate var seconds: Int64? {
        if case .value(let text) = self { CacheDirectives.seconds(text) } else { nil }
    }
}
