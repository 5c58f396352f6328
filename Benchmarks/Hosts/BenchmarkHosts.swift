/// The pin file of a large company, hosts that its entries match, and as many that none matches.
struct BenchmarkHosts {
    let pinFile: String
    /// One host of each entry, in random order.
    let found: [String]
    /// Hosts with the same domains and as many labels, for which there is no entry.
    let notFound: [String]

    /// Of ten entries eight are exact, one is a `*.` and one a `**.`, all of three or four labels.
    init(count: Int, using random: inout SplitMix) {
        let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
        var file = "hosts:\n"
        var found: [String] = []
        var notFound: [String] = []
        for number in 0..<count {
            let word = String(random.next(), radix: 36).prefix(6)
            let name = "\(word).team\(number % 1000).company\(number % 37).test"
            let other = "\(word).group\(number % 1000).company\(number % 37).test"
            switch number % 10 {
            case 0:
                file += "  - match: \"*.\(number).\(name)\"\n"
                found.append("www.\(number).\(name)")
                notFound.append("www.\(number).\(other)")
            case 1:
                file += "  - match: \"**.\(number).\(name)\"\n"
                found.append("eu.www.\(number).\(name)")
                notFound.append("eu.www.\(number).\(other)")
            default:
                file += "  - match: h\(number).\(name)\n"
                found.append("h\(number).\(name)")
                notFound.append("h\(number).\(other)")
            }
            file += "    pinning: public-key\n    pins:\n      - \(pin)\n"
        }
        pinFile = file
        // Copied in the new order, so that they are adjacent in memory.
        self.found = found.shuffled(using: &random).map { String(decoding: Array($0.utf8), as: UTF8.self) }
        self.notFound = notFound.shuffled(using: &random).map { String(decoding: Array($0.utf8), as: UTF8.self) }
    }
}

/// A generator with a fixed seed, so that every run has the same names.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
        return value ^ value >> 31
    }
}
