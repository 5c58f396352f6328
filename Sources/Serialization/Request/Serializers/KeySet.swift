/// Finds repeated keys of a dictionary, byte by byte: Swift's strings equate composed and decomposed accents.
struct KeySet {
    private var keys: Set<[UInt8]> = []

    /// - Returns: whether it is new.
    mutating func insert(_ key: String) -> Bool { keys.insert(Array(key.utf8)).inserted }
}
