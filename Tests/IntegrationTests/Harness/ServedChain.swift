/// What a server shows: certificates as PEM, leaf first, and the leaf's key.
struct ServedChain: Sendable {
    var pem: String
    var keyPEM: String
}
