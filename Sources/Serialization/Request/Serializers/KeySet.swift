/// The keys of a dictionary, to find one that repeats. Keys are compared byte by byte: to Swift, texts that differ
/// in how an accent is composed are equal; to JSON they are two keys.
struct KeySet {
    private var keys: Set<[UInt8]> = []

    /// - Returns: whether it is new.
    mutating func insert(_ key: String) -> Bool { keys.insert(Array(key.utf8)).inserted }
}
