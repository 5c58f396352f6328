/// Why bytes are not a certificate.
package enum CertificateError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The DER is broken; the text is the reason.
    case malformed(String)
    /// Parsing it would cost too much. The text says why, of "it".
    case costly(String)
    /// The PEM around it is broken or holds nothing of use.
    case pem(PEMError)
    /// The block of a PEM file that begins at the line is not a certificate.
    case block(number: Int, line: Int, reason: String)

    package var description: String {
        switch self {
        case .malformed(let reason): "not a certificate: \(reason)"
        case .costly(let reason): "the certificate is refused: \(reason)"
        case .pem(let error): error.description
        case .block(let number, let line, let reason):
            "line \(line): certificate \(number) in it is broken: \(reason)"
        }
    }

    var reason: String {
        switch self {
        case .malformed(let text), .costly(let text): text
        case .pem, .block: description
        }
    }

    init(_ fault: CertificateLimits.Fault) {
        self =
            switch fault {
            case .notDER: .malformed(fault.text)
            case .costly(let text): .costly(text)
            }
    }
}
