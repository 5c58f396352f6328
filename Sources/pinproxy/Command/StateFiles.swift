internal import FoundationEssentials
internal import Glibc
internal import PinproxyDaemon
internal import PinproxyRecords
internal import PinproxySecurity
internal import PinproxyTLS

/// The files that the running proxy leaves in the state directory for the other commands.
struct StateFiles {
    let directory: String

    var own: TrustedDirectory { TrustedDirectory(directory) }

    static let processID = "pinproxy.pid"
    var controlSocket: StateSocket { ControlSocket.place(in: directory) }
    var runSocket: StateSocket { RunSocket.place(in: directory) }
    var doorSocket: StateSocket { DoorSocket.place(in: directory) }
    /// The log of the proxy that `pinproxy exec --start` has started last.
    static let execLog = "exec.log"

    static func trustFolder(_ key: String) -> String { "trust/\(key)" }

    /// Makes the directory if it isn't there. Others may read in it (the authority's certificate), but not the key.
    func create() throws {
        do throws(FileProblem) {
            try own.create()
        } catch {
            throw CommandFailure("the state directory \(directory) can't be created: \(error)")
        }
    }

    /// Makes it for a proxy. One that can't be made is no reason not to serve; one that others can change is.
    func createForProxy() throws {
        do throws(FileProblem) {
            try own.create()
            try own.requireOwn()
        } catch .untrusted(let cause) {
            throw CommandFailure(
                code: CommandFailure.configuration,
                message:
                    "the state directory can't be used: \(cause); run this as the user to whom it belongs, or name "
                    + "another one with --state-directory")
        } catch {}
    }
}

extension StateFiles {
    /// The files of ``TrustFiles``, of every authority. Stores are named by their contents: those present, whole or
    /// in part.
    private var trustFiles: [String] {
        own.names(in: "trust").map(Self.trustFolder).flatMap { folder in
            let stores = own.names(in: folder).compactMap {
                $0.prefixMatch(of: /java-[0-9a-f]{12}\.p12/).map { String($0.output) }
            }
            return (TrustFiles.names + [TrustStamp.name] + ProgramFiles.names + stores).map { "\(folder)/\($0)" }
        }
    }

    /// Files written beside their place and moved there, without the authority's.
    var files: [String] {
        [
            ChainRecorder.fileName, IncidentLedger.fileName, IncidentLedger.matchedFileName, PinHistory.fileName,
            EnforcedEntries.fileName, RuleHistory.fileName, ListenFile.name,
            KeptConfiguration.fileName, SaidOnce.name,
        ] + trustFiles
    }
}
