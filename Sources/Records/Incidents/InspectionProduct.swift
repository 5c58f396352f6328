import PinproxyTLS

/// TLS inspection products, by the names in the certificates that they issue: security gateways, virus scanners and
/// debugging proxies. docs/incidents.md lists them. Anybody can write such a name into a certificate: it is a hint.
package struct InspectionProduct: Sendable, Equatable {
    package let name: String
    /// Part of an issuer's name, in lower case.
    let mark: String

    private init(_ name: String, _ mark: String) {
        self.name = name
        self.mark = mark
    }

    /// The first that matches counts.
    package static let all = [
        InspectionProduct("AdGuard", "adguard"),
        InspectionProduct("Avast or AVG", "avast"),
        InspectionProduct("Avast or AVG", "avg technologies"),
        InspectionProduct("Barracuda", "barracuda"),
        InspectionProduct("Bitdefender", "bitdefender"),
        InspectionProduct("Blue Coat (Symantec)", "blue coat"),
        InspectionProduct("Blue Coat (Symantec)", "bluecoat"),
        InspectionProduct("Burp Suite", "portswigger"),
        InspectionProduct("Charles Proxy", "charles proxy"),
        InspectionProduct("Check Point", "check point"),
        InspectionProduct("Cisco Umbrella", "cisco umbrella"),
        InspectionProduct("Cisco Secure Web Appliance", "cisco web security"),
        InspectionProduct("Cloudflare Gateway", "gateway ca - cloudflare"),
        InspectionProduct("ESET", "eset ssl filter"),
        InspectionProduct("Fiddler", "fiddlerroot"),
        InspectionProduct("Forcepoint", "forcepoint"),
        InspectionProduct("Forcepoint (Websense)", "websense"),
        InspectionProduct("Fortinet", "fortinet"),
        InspectionProduct("Fortinet", "fortigate"),
        InspectionProduct("GoGuardian", "goguardian"),
        InspectionProduct("iboss", "iboss"),
        InspectionProduct("Kaspersky", "kaspersky"),
        InspectionProduct("Lightspeed", "lightspeed"),
        InspectionProduct("mitmproxy", "mitmproxy"),
        InspectionProduct("Netskope", "netskope"),
        InspectionProduct("Palo Alto Networks", "palo alto networks"),
        InspectionProduct("pinproxy", "pinproxy"),
        InspectionProduct("Proxyman", "proxyman"),
        InspectionProduct("Securly", "securly"),
        InspectionProduct("Skyhigh (McAfee)", "mcafee web gateway"),
        InspectionProduct("Skyhigh (McAfee)", "skyhigh"),
        InspectionProduct("Smoothwall", "smoothwall"),
        InspectionProduct("SonicWall", "sonicwall"),
        InspectionProduct("Sophos", "sophos"),
        InspectionProduct("Squid", "squid"),
        InspectionProduct("Superfish", "superfish"),
        InspectionProduct("Trend Micro", "trend micro"),
        InspectionProduct("Untangle", "untangle"),
        InspectionProduct("WatchGuard", "watchguard"),
        InspectionProduct("Zscaler", "zscaler"),
    ]

    /// The product that an issuer of the chain names.
    static func issuing(_ chain: [Certificate]) -> InspectionProduct? {
        // A leaf's subject is the host's, and may be anything.
        let names = chain.enumerated().flatMap { depth, certificate in
            depth == 0 ? [certificate.issuer] : [certificate.subject, certificate.issuer]
        }.map { $0.lowercased() }
        return all.first { product in names.contains { $0.contains(product.mark) } }
    }
}
