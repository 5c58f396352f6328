internal import Clients

/// What a client is told.
struct RefusalReport: Encodable {
    let status: Int
    let title: String
    let details: String

    init(_ answer: Rehearsal.Answer) { (status, title, details) = (answer.status, answer.title, answer.text) }
}
