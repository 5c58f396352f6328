internal import Glibc
internal import PinproxyDaemon
internal import PinproxyHTTPWire
internal import PinproxyLocalPeers
internal import PinproxyRecords
internal import PinproxySecurity
internal import PinproxyTLS

/// The source of incidents: a running proxy, or its files.
struct IncidentSource {
    private let files: StateFiles
    private let proxy: RunningProxy?

    init(_ files: StateFiles) {
        self.files = files
        proxy = RunningProxy.find(files)
    }

    func list() throws -> IncidentList {
        if let proxy { return try proxy.ask(.get, "/incidents") }
        return IncidentList(try history())
    }

    func show(_ id: String) throws -> IncidentRecord {
        try Self.check(id)
        if let proxy { return try proxy.ask(.get, "/incidents/\(id)") }
        return IncidentRecord(try found(id, in: try history()), try matched())
    }

    /// - Returns: the incident, and whether it was open.
    func acknowledge(_ id: String, at time: UnixTime) throws -> (incident: Incident, wasOpen: Bool) {
        try Self.check(id)
        if let proxy {
            let known: IncidentRecord = try proxy.ask(.get, "/incidents/\(id)")
            guard known.incident.isOpen else { return (known.incident, false) }
            let record: IncidentRecord = try proxy.ask(.post, "/incidents/\(known.incident.id)/ack")
            return (record.incident, true)
        }
        var history = try history()
        let incident = try found(id, in: history)
        let user = getuid()
        let name = UserName.of(user).map { "\($0) (user \(user))" } ?? "user \(user)"
        if let done = history.acknowledge(incident.id, by: name, at: time) {
            do throws(StateFileProblem) {
                try IncidentLedger.file(in: files.directory).write(history)
            } catch {
                throw CommandFailure("\(error)")
            }
            return (done, true)
        }
        return (incident, false)
    }

    /// Before it becomes a part of a path.
    private static func check(_ id: String) throws {
        do throws(IncidentQuestion) {
            _ = try IncidentHistory().find(id)
        } catch .malformed {
            throw CommandFailure("\(id.printable): \(IncidentQuestion.malformed)")
        } catch {}
    }

    private func found(_ id: String, in history: IncidentHistory) throws -> Incident {
        do throws(IncidentQuestion) { return try history.find(id) } catch { throw CommandFailure("\(error)") }
    }

    private func history() throws -> IncidentHistory {
        do throws(StateFileProblem) {
            return try IncidentLedger.file(in: files.directory).read() ?? IncidentHistory()
        } catch {
            throw CommandFailure("the incidents can't be read: \(error)")
        }
    }

    private func matched() throws -> MatchedChains {
        do throws(StateFileProblem) {
            return try IncidentLedger.matchedFile(in: files.directory).read() ?? MatchedChains()
        } catch {
            throw CommandFailure("the chains that matched can't be read: \(error)")
        }
    }
}
