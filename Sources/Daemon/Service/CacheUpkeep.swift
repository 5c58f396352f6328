import Logging
import PinproxyConfiguration
import PinproxyDiskStore
import PinproxyEventLoop
import PinproxySession

/// Configures the cache, and logs what happens to its files.
extension ProxyDaemon {
    func followCache() {
        cache.resize(to: snapshot.cache)
        guard snapshot.storesOnDisk else {
            cache.disk?.close()
            cache.disk = nil
            return
        }
        if let disk = cache.disk { return disk.open(limit: snapshot.cache.disk) }
        let logger = logger
        do throws(SystemError) {
            let disk = try DiskTier(
                directory: "\(snapshot.stateDirectory)/cache", limit: snapshot.cache.disk,
                notify: { $0.log(to: logger) })
            cache.disk = disk
            disk.open(limit: snapshot.cache.disk)
        } catch {
            logger.warning("cache.failed", metadata: ["cause": "\(error)", "effect": "nothing is stored on disk"])
        }
    }
}

extension DiskTier.Notice {
    fileprivate func log(to logger: Logger) {
        func failed(_ cause: String, _ effect: String) {
            logger.warning("cache.failed", metadata: ["cause": "\(cause)", "effect": "\(effect)"])
        }
        switch self {
        case .unavailable(let cause): failed(cause, "nothing is stored on disk, or found there, until it can be opened")
        case .available, .event(.resumed): logger.notice("cache.ready")
        case .event(.begunAnew(let reason, let place)):
            failed(reason, "what was stored is lost" + (place.map { "; the old index is \($0)" } ?? ""))
        case .event(.reopened(let reason)): failed(reason, "what was stored there is lost; the cache is made again")
        case .event(.damaged(let url, let reason)):
            // Queries hold secrets.
            let shown = url.prefix { $0 != "?" }
            logger.warning("cache.damaged", metadata: ["url": "\(shown)", "cause": "\(reason)"])
        case .event(.paused(let problem, let seconds)): failed("\(problem)", "nothing is stored for \(seconds) s")
        case .event(.swept), .event(.evicted): break
        }
    }
}
