/// A local client's identity, for people and the log. A class, shared by the tasks of a connection.
package final class ClientTraits: Sendable {
    package let user: UInt32
    package let userName: String?
    /// The process that holds the connection; of several, the oldest.
    package let process: Int32?
    package let executable: String?
    package let unit: String?
    /// Processes that hold the connection, as far as known.
    package let holders: Int

    package init(
        user: UInt32, userName: String? = nil, process: Int32? = nil, executable: String? = nil, unit: String? = nil,
        holders: Int = 0
    ) {
        self.user = user
        self.userName = userName
        self.process = process
        self.executable = executable
        self.unit = unit
        self.holders = holders
    }
}

extension ClientTraits: CustomStringConvertible {
    /// `build, process 4711 (/usr/bin/curl), ci.service`
    package var description: String {
        let program = executable.map { " (\($0))" } ?? ""
        let others = holders > 1 ? " and \(holders - 1) more" : ""
        return [userName ?? "user \(user)", process.map { "process \($0)\(program)\(others)" }, unit]
            .compactMap(\.self).joined(separator: ", ")
    }
}
