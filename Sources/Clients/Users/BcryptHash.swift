import CCrypt
import Glibc

/// A password's bcrypt hash as `htpasswd -nB` writes it: `$2y$10$` and 53 characters.
struct BcryptHash: Sendable, Equatable {
    private let text: String
    /// The logarithm of the work that a comparison takes.
    let cost: Int

    /// Nil if it is not bcrypt, or a variant that isn't sound (`$2x$`) or known (`$2$`) here.
    init?(_ text: Substring) {
        guard let match = text.wholeMatch(of: /\$2[aby]\$(?<cost>[0-9]{2})\$[.\/A-Za-z0-9]{53}/),
            let cost = Int(match.output.cost), (4...31).contains(cost)
        else { return nil }
        self.text = String(text)
        self.cost = cost
    }

    /// Whether it is the hash of that password. Takes milliseconds to seconds, by its cost.
    func isOf(_ password: [UInt8]) -> Bool {
        // C's strings end at a NUL: what stands after it would not be compared.
        guard !password.contains(0) else { return false }
        let state = UnsafeMutablePointer<crypt_data>.allocate(capacity: 1)
        state.initialize(to: crypt_data())
        defer {
            // Traces of the password are in it.
            explicit_bzero(state, MemoryLayout<crypt_data>.size)
            state.deallocate()
        }
        return (password + [0]).withUnsafeBytes { phrase in
            guard let result = crypt_r(phrase.assumingMemoryBound(to: CChar.self).baseAddress, text, state) else {
                return false
            }
            return Self.areEqual(Array(String(cString: result).utf8), Array(text.utf8))
        }
    }

    /// Takes the same time wherever they differ.
    private static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for index in left.indices { difference |= left[index] ^ right[index] }
        return difference == 0
    }
}
