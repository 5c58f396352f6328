import PinproxySerialization
import Synchronization

/// Images in memory by their requests: AFAutoPurgingImageCache. When it is full, it drops those that were not used for
/// longest, down to a preferred size. Thread-safe.
public final class ImageCache: Sendable {
    private struct Entry {
        let image: LoadedImage
        var used: UInt64
    }

    private struct State {
        var entries: [ImageKey: Entry] = [:]
        var size = 0
        var clock: UInt64 = 0
    }

    private let state = Mutex(State())
    /// Most bytes of the images.
    public let capacity: Int
    /// Bytes to keep when the cache is full.
    public let preferredSize: Int

    /// - Parameters:
    ///   - capacity: in bytes of encoded images.
    ///   - preferredSize: at most the capacity.
    public init(capacity: Int = 100_000_000, preferredSize: Int = 60_000_000) {
        self.capacity = max(capacity, 0)
        self.preferredSize = min(max(preferredSize, 0), self.capacity)
    }

    /// The bytes in use.
    public var size: Int { state.withLock { $0.size } }

    /// The stored image for a request; nil: none.
    public func image(for request: HTTPRequest) -> LoadedImage? { image(for: ImageKey(request)) }

    func image(for key: ImageKey) -> LoadedImage? {
        state.withLock { state in
            guard let image = state.entries[key]?.image else { return nil }
            state.clock += 1
            state.entries[key]?.used = state.clock
            return image
        }
    }

    /// Stores an image, in place of another one. One larger than the capacity isn't stored.
    public func store(_ image: LoadedImage, for request: HTTPRequest) { store(image, for: ImageKey(request)) }

    func store(_ image: LoadedImage, for key: ImageKey) {
        guard image.bytes.count <= capacity else { return remove(key) }
        state.withLock { state in
            state.clock += 1
            let old = state.entries.updateValue(Entry(image: image, used: state.clock), forKey: key)
            state.size += image.bytes.count - (old?.image.bytes.count ?? 0)
            guard state.size > capacity else { return }
            for (key, entry) in state.entries.sorted(by: { $0.value.used < $1.value.used }) {
                guard state.size > preferredSize else { return }
                state.entries[key] = nil
                state.size -= entry.image.bytes.count
            }
        }
    }

    /// Removes one, if it is there.
    public func remove(_ request: HTTPRequest) { remove(ImageKey(request)) }

    private func remove(_ key: ImageKey) {
        state.withLock { state in
            guard let entry = state.entries.removeValue(forKey: key) else { return }
            state.size -= entry.image.bytes.count
        }
    }

    /// Removes all images.
    public func removeAll() { state.withLock { $0 = State() } }
}

/// Identifies equal requests for images. Fields count: an image may be for one user.
struct ImageKey: Hashable {
    private let url: String
    private let fields: [HeaderField]

    init(_ request: HTTPRequest) {
        url = request.url
        fields = request.fields
    }
}
