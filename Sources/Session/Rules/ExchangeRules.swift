package import Serialization

/// The rules that hold for one exchange, all that was written laid over the defaults. A class, so that a
/// look-up hands out a reference and copies nothing; a host without rules has none.
package final class ExchangeRules: Sendable {
    package let session: SessionRules
    package let request: RequestRules
    package let response: ResponseRules

    package init(
        session: SessionRules = SessionRules(), request: RequestRules = RequestRules(),
        response: ResponseRules = ResponseRules()
    ) {
        self.session = session
        self.request = request
        self.response = response
    }
}
