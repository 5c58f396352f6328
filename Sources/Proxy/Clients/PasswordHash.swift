import CCrypt
import Glibc

/// A bcrypt hash as htpasswd -B writes it, checked by the system's crypt.
struct PasswordHash: Sendable {
    private let text: String

    init(_ text: String) {
        self.text = text
    }

    /// The logarithm of the work that a check takes.
    var cost: Int { Int(text.dropFirst(4).prefix(2)) ?? 0 }

    /// A hash of that cost that no password has.
    static func unmatched(cost: Int) -> PasswordHash {
        let digits = cost < 10 ? "0\(cost)" : "\(cost)"
        return PasswordHash("$2y$\(digits)$" + String(repeating: ".", count: 53))
    }

    /// Takes its time: 50 ms at the usual cost. Compares in constant time.
    func matches(_ password: [UInt8]) -> Bool {
        // A C string ends at NUL: "secret\0x" must not pass for "secret".
        let hasNUL = password.contains(0)
        let computed = Self.crypt(hasNUL ? [] : password, setting: text)
        let expected = Array(text.utf8)
        guard computed.count == expected.count else { return false }
        var difference: UInt8 = 0
        for (ours, theirs) in zip(computed, expected) { difference |= ours ^ theirs }
        return difference == 0 && !hasNUL
    }

    /// The hash of the password with the salt of `setting`; empty if the system can't compute it.
    private static func crypt(_ password: [UInt8], setting: String) -> [UInt8] {
        // crypt_ra puts its working memory, which holds traces of the password, where it is told.
        var memory: UnsafeMutableRawPointer?
        var size: CInt = 0
        defer {
            if let memory {
                explicit_bzero(memory, Int(size))
                free(memory)
            }
        }
        let phrase = password.map(CChar.init(bitPattern:)) + [0]
        guard let hash = crypt_ra(phrase, setting, &memory, &size) else { return [] }
        return Array(String(cString: hash).utf8)
    }
}
