import Decoding
import Logging
import Session

extension DecoderEvents {
    /// As events of the log. It doesn't wait for who reads them.
    init(for logger: Logger) {
        self.init()
        failed = { incident in
            var fields: Logger.Metadata = [
                "cause": "\(incident.failure.cause)", "pid": "\(incident.process)",
                "effect": "the body is refused, and another process takes the next",
            ]
            if let host = incident.host {
                fields["host"] = "\(host)"
            } else {
                fields["effect"] = "nothing: it had no body"
            }
            if !incident.output.isEmpty { fields["output"] = "\(incident.output)" }
            logger.warning("decoder.failed", metadata: fields)
        }
        unavailable = { cause in
            let effect = "bodies that rules have to read are answered with 503 until one can be started"
            logger.error("decoder.unavailable", metadata: ["cause": "\(cause)", "effect": "\(effect)"])
        }
        availableAgain = { logger.notice("decoder.unavailable", metadata: ["effect": "over"]) }
    }
}
