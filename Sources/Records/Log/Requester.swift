package import Logging
package import PinproxyEventLoop
package import PinproxySession
import PinproxyTLS

/// The client that asked for a connection, as far as it is known: for refusals and incidents.
package struct Requester: Sendable {
    /// The number of the task.
    package let task: UInt64
    package let client: Endpoint?
    package let traits: ClientTraits?

    package init(task: UInt64, client: Endpoint?, traits: ClientTraits?) {
        self.task = task
        self.client = client
        self.traits = traits
    }

    package init(_ record: borrowing TaskRecord) {
        self.init(task: record.number, client: record.client, traits: record.traits)
    }

    /// As `exchange` lines have it.
    package var fields: Logger.Metadata {
        var fields: Logger.Metadata = ["task": .stringConvertible(task)]
        if let client { fields["client"] = "\(client)" }
        if let traits { fields.merge(traits.fields) { $1 } }
        return fields
    }
}

extension ClientTraits {
    package var fields: Logger.Metadata {
        var fields: Logger.Metadata = ["client_uid": .stringConvertible(user)]
        fields["client_pid"] = process.map { .stringConvertible($0) }
        fields["client_exe"] = executable.map { "\($0)" }
        fields["client_unit"] = unit.map { "\($0)" }
        return fields
    }
}

extension OriginContact {
    /// Fields about the connection to a refused or reported origin.
    package var fields: Logger.Metadata {
        var fields: Logger.Metadata = ["address": "\(address)"]
        fields["resolved"] = resolved.map { "\($0)" }
        fields["resolver"] = source.map { "\($0)" }
        fields["tls_version"] = tls.map { "\($0.version)" }
        fields["cipher"] = tls.map { "\($0.cipher)" }
        fields["tls_group"] = tls?.group.map { "\($0)" }
        return fields
    }
}
