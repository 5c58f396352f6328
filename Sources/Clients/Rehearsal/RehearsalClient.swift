import Configuration
import Glibc
import LocalPeers

extension Rehearsal {
    /// A client as a person describes it on a command line: `user=build,unit=ci.service,executable=/usr/bin/curl`. What isn't
    /// said of it is unknown.
    package struct Client: Sendable {
        let peer: ClientPeer

        package init(_ text: String) throws(ClientError) {
            var user: (number: UInt32, name: String?)?
            var unit: String?
            var executable: String?
            for part in text.split(separator: ",", omittingEmptySubsequences: false) {
                let pair = part.split(separator: "=", maxSplits: 1).map(String.init)
                guard pair.count == 2 else {
                    throw ClientError("\(text.debugDescription): write it as user=build,unit=ci.service,executable=/usr/bin/curl")
                }
                switch pair[0] {
                case "user": user = try Self.user(pair[1])
                case "unit": unit = pair[1]
                case "executable": executable = pair[1]
                default: throw ClientError("\(text.debugDescription): \"\(pair[0])\" is not user, unit or executable")
                }
            }
            var peer = ClientPeer(user.map { LocalSocket(user: $0.number, inode: nil) })
            peer.userName = user?.name
            peer.processes = .found([LocalProcess(id: 0, started: 0, executable: executable, unit: unit)], isComplete: true)
            self.peer = peer
        }

        private static func user(_ text: String) throws(ClientError) -> (number: UInt32, name: String?) {
            if let number = UInt32(text) { return (number, nil) }
            guard let entry = getpwnam(text) else {
                throw ClientError("there is no user \"\(text)\"; getent passwd shows which there are")
            }
            return (entry.pointee.pw_uid, text)
        }
    }

    /// Why a text describes no client.
    package struct ClientError: Error, CustomStringConvertible {
        package let description: String

        init(_ description: String) { self.description = description }
    }
}
