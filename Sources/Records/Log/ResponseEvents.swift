import HTTPWire
package import Logging
package import Serialization
package import Session

/// What the response rules find, as events of the log, each in its place among the exchanges.
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
            "task": "\(finding.number)", "method": "\(finding.method)", "path": "\(finding.path)",
            "status": "\(finding.status)", "code": "\(error.code.rawValue)", "expected": "\(error.expected)",
            "cause": "\(error)",
        ]
        if let authority = finding.authority {
            fields["host"] = "\(authority.host)"
            fields["port"] = "\(authority.port)"
            fields["cause"] = "\(error.description(host: authority.host))"
        }
        if let entry = finding.entry { fields["entry"] = "\(entry)" }
        if let rule = finding.rules.source(of: error) { fields["rule"] = "\(rule)" }
        logger.log(
            level: .warning, finding.rules.response.enforcement == .enforce ? "serializer.mismatch" : "serializer.report",
            metadata: fields)
    }
}
