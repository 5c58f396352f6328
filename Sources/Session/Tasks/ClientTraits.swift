/// Who a client on this machine is, for people and the log. A class: every task of a connection has the same.
package final class ClientTraits: Sendable {
    package let user: UInt32
    package let userName: String?
    /// The process that holds the connection; of several the one that started first.
    package let process: Int32?
    package let executable: String?
    package let unit: String?
    /// How many processes hold the connection, as far as that is known.
    package let holders: Int

    package init(
        user: UInt32, userName: String? = nil, process: Int32? = nil, executable: String? = nil, unit: String? = nil, holders: Int = 0
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
