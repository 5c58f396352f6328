package import PinproxyHTTPWire
package import PinproxyTransport

/// A body complete in memory, or none.
package final class HeldBody: BodySource {
    private var bytes: PassingBytes
    private let reservation: BodyReservation?

    package init(_ bytes: [UInt8] = [], holding reservation: BodyReservation? = nil) {
        self.bytes = PassingBytes(bytes)
        self.reservation = reservation
    }

    package var moved: UInt64 { UInt64(bytes.position) }
    package var canRewind: Bool { true }
    package func rewind() { bytes.rewind() }

    package func move(to sink: any BodySink, readable: Bool) -> BodyMove {
        do throws(StreamError) {
            let count = try bytes.write(to: sink)
            bytes.advance(by: count)
        } catch {
            return .sinkFailed(error)
        }
        return bytes.isPassed ? sink.endBody() : .blocked
    }
}

/// A downstream for a complete request made here.
package protocol HoldsRequest: Downstream {
    var request: OwnedRequest { get }
    var held: HeldBody { get }
}

extension HoldsRequest {
    package func withRequest(_ body: (borrowing RequestView) -> Void) {
        // A copy, since the view borrows from it.
        let request = request
        body(request.view)
    }

    package var requestBody: any BodySource { held }
    package func wantsRead(_ wanted: Bool) {}
}

/// A downstream that answers no client directly. The clients concerned have separate tasks, or none.
protocol ActsForClients: HoldsRequest, ExchangeGuide {
    /// Reports connection attempts on behalf of the client that caused them.
    var report: AttemptReport { get }
}

extension ActsForClients {
    var guide: any ExchangeGuide { self }
    func attemptReport() -> AttemptReport { report }
    func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>, to destination: Destination) {
        report(result)
    }

    /// Only for the log.
    func refusal(for failure: ExchangeFailure, to destination: Destination) -> TaskRecord.Refusal {
        TaskRecord.Refusal(status: 502, cause: failure.cause, errorType: "proxy_internal_response")
    }
}
