import CPinproxyOpenSSL
import PinproxyAddresses

extension Certificate {
    /// This certificate and its issuers in order, by names and key identifiers; no signature is checked.
    package func chain(through others: [Certificate]) -> [Certificate] {
        var chain = [self]
        while let top = chain.last, !top.isSelfSigned,
            let issuer = others.first(where: {
                X509_check_issued($0.pointer, top.pointer) == X509_V_OK && !chain.contains($0)
            })
        { chain.append(issuer) }
        return chain
    }

    /// basicConstraints' pathLenConstraint.
    package var pathLength: Int? {
        let length = X509_get_pathlen(pointer)
        return length >= 0 ? length : nil
    }

    /// Its name constraints in one line, if any.
    package var nameConstraints: String? {
        do throws(NameConstraints.Malformed) {
            return try NameConstraints(of: self)?.description
        } catch {
            return error.text
        }
    }

    /// Why a name breaks its name constraints, if it does.
    package func nameConstraintViolation(by name: ServerName) -> String? {
        do throws(NameConstraints.Malformed) {
            return try NameConstraints(of: self)?.violation(by: name)
        } catch {
            return error.text
        }
    }
}

extension NameConstraints: CustomStringConvertible {
    private static let listed = 5

    var description: String {
        func list(_ verb: String, _ subtrees: [Subtree]) -> String? {
            guard !subtrees.isEmpty else { return nil }
            let names = subtrees.prefix(Self.listed).map(Self.text).joined(separator: ", ")
            let more = subtrees.count - Self.listed
            return "\(verb) \(names)\(more > 0 ? " and \(more) more" : "")"
        }
        return [list("permits", permitted), list("excludes", excluded)].compactMap(\.self).joined(separator: "; ")
    }

    private static func text(_ subtree: Subtree) -> String {
        switch subtree {
        case .dns(let name): name.isEmpty ? "every host name" : Certificate.printable(name)
        case .ip(let base, let mask):
            (IPAddress(bytes: base)?.description ?? "an address") + "/\(mask.reduce(0) { $0 + $1.nonzeroBitCount })"
        case .other: "names of another kind"
        }
    }
}
