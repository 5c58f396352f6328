package import Logging
package import PinproxyEventLoop
import PinproxyHTTPWire
package import PinproxySerialization
package import PinproxySession

/// Events of one worker's tasks: the access log, and control over tasks.
package struct TaskEvents {
    package let accessLog: AccessLog
    let logger: Logger
    let loop: EventLoop

    package init(accessLog: AccessLog, logger: Logger, loop: EventLoop) {
        self.accessLog = accessLog
        self.logger = logger
        self.loop = loop
    }

    /// Logs an event in order with the exchanges.
    package func log(_ level: Logger.Level, _ event: Logger.Message, _ fields: @autoclosure () -> Logger.Metadata) {
        guard level >= logger.logLevel else { return }
        accessLog.flush()
        logger.log(level: level, event, metadata: fields())
    }

    package var hooks: TaskHooks {
        var hooks = TaskHooks()
        hooks.suspended = { record, cause in log(.info, "task.suspend", Self.fields(record, cause)) }
        hooks.resumed = { record, cause in log(.info, "task.resume", Self.fields(record, cause)) }
        hooks.broke = { record, broken in
            var fields = Self.fields(record, broken.cause)
            fields["offset"] = .stringConvertible(broken.offset)
            fields["length"] = .stringConvertible(broken.length)
            fields["pause"] = .stringConvertible(LoggedTime(nanoseconds: broken.pauseNanoseconds))
            log(.notice, "download.resume", fields)
        }
        hooks.refusedCredentials = { record, refused in
            let realm = ShownText(String(decoding: refused.realm, as: UTF8.self))
            var fields = Self.fields(
                record,
                "\(refused.origin) refused the password of \(refused.user) (session.credentials): it isn't sent to "
                    + "this realm again until its file is rewritten and the configuration reloaded")
            fields["realm"] = "\(realm)"
            fields["user"] = "\(refused.user)"
            if let entry = record.entry { fields["entry"] = "\(entry)" }
            log(.warning, "credentials.refused", fields)
        }
        if logger.logLevel <= .debug {
            hooks.completed = { record in log(.debug, "task.complete", Self.fields(record, record.failure)) }
        }
        return hooks
    }

    /// For dropped idle connections and TLS sessions.
    package func invalidated(connections: Int, sessions: Int, cause: String) {
        guard connections > 0 || sessions > 0 else { return }
        log(
            .info, "session.invalidate",
            [
                "connections": .stringConvertible(connections), "tls_sessions": .stringConvertible(sessions),
                "cause": "\(cause)",
            ])
    }

    private static func fields(_ record: borrowing TaskRecord, _ cause: String?) -> Logger.Metadata {
        var fields: Logger.Metadata = ["task": .stringConvertible(record.number), "kind": "\(record.kind.rawValue)"]
        if let authority = record.authority { fields["host"] = "\(authority.host)" }
        if let cause { fields["cause"] = "\(cause)" }
        return fields
    }
}

/// Findings of response rules as events, in order with the exchanges.
package struct ResponseEvents {
    let accessLog: AccessLog
    let logger: Logger

    package init(accessLog: AccessLog, logger: Logger) {
        self.accessLog = accessLog
        self.logger = logger
    }

    package func tell(_ finding: ResponseFinding, _ error: ResponseSerializationError) {
        guard logger.logLevel <= .warning else { return }
        accessLog.flush()
        var fields: Logger.Metadata = [
            "task": .stringConvertible(finding.number), "method": "\(finding.method)", "path": "\(finding.path)",
            "status": .stringConvertible(finding.status), "code": .stringConvertible(error.code.rawValue),
            "expected": "\(error.expected)",
            "cause": "\(error)",
        ]
        if let authority = finding.authority {
            fields["host"] = "\(authority.host)"
            fields["port"] = .stringConvertible(authority.port)
            fields["cause"] = "\(error.description(host: authority.host))"
        }
        if let entry = finding.entry { fields["entry"] = "\(entry)" }
        if let rule = finding.rules.source(of: error) { fields["rule"] = "\(rule)" }
        logger.log(
            level: .warning,
            finding.rules.response.enforcement == .enforce ? "serializer.mismatch" : "serializer.report",
            metadata: fields)
    }
}
