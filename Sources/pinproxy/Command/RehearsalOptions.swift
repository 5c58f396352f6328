internal import ArgumentParser
internal import Glibc
internal import PinproxyClients
internal import PinproxyConfiguration
internal import PinproxySecurity
internal import PinproxySession
internal import PinproxyTLS

extension ConfigurationOptions {
    /// The configuration; nil, with a message on standard error, if it doesn't exist.
    func loadIfPresent() throws -> Snapshot? {
        if try choiceIfAny() == nil {
            Standard.error("pinproxy: no configuration: using the system's trust and no parent proxy")
            return nil
        }
        return try load()
    }
}

extension Rehearsal {
    /// As the proxy with this configuration would connect, at that time; nil: with the defaults, and now.
    /// - Parameter parent: the proxy to connect through instead of the configuration's.
    init(_ snapshot: Snapshot?, at instant: UnixTime? = nil, via parent: ParentProxy? = nil) throws {
        let clock: @Sendable () -> UnixTime = { instant ?? Clock.now }
        guard let snapshot else {
            do throws(AnchorsError) {
                let upstream = UpstreamSettings(anchors: try TrustAnchors.system(), parent: parent)
                self.init(upstream: upstream, timeouts: Timeouts(), ownAuthority: nil, unixTime: clock)
            } catch {
                throw CommandFailure("\(error)")
            }
            return
        }
        let own = (try? snapshot.authorityFiles.loadCertificates())?.first
        var upstream = snapshot.upstream
        if let parent { upstream.parent = parent }
        self.init(
            upstream: upstream, timeouts: snapshot.timeouts, ownAuthority: own,
            listen: snapshot.proxy.listen.addresses,
            unixTime: clock)
    }

    /// Connects, or says what this machine lacks for it.
    func play(_ host: Host, _ act: Act) throws -> Ending {
        do { return try run(host, act) } catch { throw CommandFailure("\(error)") }
    }

    /// Tries several hosts, as time permits.
    func play(_ parts: [(host: Host, act: Act)], within limit: Duration) throws -> [Ending?] {
        do { return try run(parts, within: limit) } catch { throw CommandFailure("\(error)") }
    }
}

extension Rehearsal.Host {
    /// - Throws: wrong usage.
    init(argument: String) throws {
        do { try self.init(argument) } catch { throw ValidationError("\(error)") }
    }
}

/// The machine's clock.
enum Clock {
    static var now: UnixTime { UnixTime(time(nil)) }
}

/// An instant on the command line, e.g. after `--at`.
struct Instant: ExpressibleByArgument {
    let time: UnixTime

    init?(argument: String) {
        guard let time = DateText.parse(argument) else { return nil }
        self.time = time
    }
}
