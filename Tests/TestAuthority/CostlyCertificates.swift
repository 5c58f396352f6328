import CPinproxyOpenSSL
import Glibc

/// Parts of certificates that are expensive to parse.
public enum CostlyCertificates {
    /// id-ecPublicKey
    public static let curveKey = "1.2.840.10045.2.1"

    /// A key with explicit curve parameters and a compressed point. OpenSSL takes a square root modulo `k·2⁶⁰⁰ + 1`,
    /// which takes 110 ms.
    /// - Parameter algorithm: OpenSSL decodes SM2's identifier by the same code.
    public static func explicitCurve(algorithm: String = curveKey) -> [UInt8] {
        let prime = [0xF5, 0x7A, 0x06, 0x6E, 0x66, 0x33, 0x33] + [UInt8](repeating: 0, count: 74) + [1]
        // The prime less 3.
        let a = [0xF5, 0x7A, 0x06, 0x6E, 0x66, 0x33, 0x32] + [UInt8](repeating: 0xFF, count: 74) + [0xFE]
        let b = bytes(
            "121fdec772bd03aa0139a63efecda93e54c3a4654484784a9e6e30e4fc0e4a3c914456f70514ee983594f96192f5c304"
                + "5920b3f0bff90432d688ded64d6e3789e11281651d6321e2bb5e8067e5075f629b76")
        let x = bytes(
            "dc768e989b16c245869c11e976d2e2075329d644c84fa132522360cc76afb05ebc532d2195a2cf2a83d8fc5316a6a471"
                + "8936c8eb187ae6a2df687c0bd1d8c4ad970f31db52f7c7ba24a4e2feae1be52e38d7")
        let parameters = DERWriter.sequence(
            DERWriter.integer(1),
            DERWriter.sequence(DERWriter.identifier("1.2.840.10045.1.1"), DERWriter.integer(prime)),
            DERWriter.sequence(DERWriter.octets(a), DERWriter.octets(b)), DERWriter.octets([2] + x),
            DERWriter.integer(prime), DERWriter.integer(1))
        return DERWriter.sequence(
            DERWriter.sequence(DERWriter.identifier(algorithm), parameters), DERWriter.bits([2] + x))
    }

    /// A compressed point of P-224. Square roots are expensive modulo its prime.
    public static let compressedP224 = named(
        "1.3.132.0.33", [2] + bytes("b70e0cbd6bb4bf7f321390b94a03c1d356c21122343280d6115c1d21"))

    private static let x256 = bytes("6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296")
    private static let y256 = bytes("4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5")

    /// The generator of P-256 in the forms of SEC 1.
    public static let compressedP256 = named("1.2.840.10045.3.1.7", [3] + x256)
    public static let hybridP256 = named("1.2.840.10045.3.1.7", [7] + x256 + y256)
    public static let uncompressedP256 = named("1.2.840.10045.3.1.7", [4] + x256 + y256)

    public static func named(_ curve: String, _ point: [UInt8]) -> [UInt8] {
        DERWriter.sequence(
            DERWriter.sequence(DERWriter.identifier(curveKey), DERWriter.identifier(curve)), DERWriter.bits(point))
    }

    /// Distribution points (RFC 5280 section 4.2.1.13) with names relative to the issuer. OpenSSL copies the issuer's
    /// name for each.
    public static func relativeDistributionPoints(_ count: Int) -> [UInt8] {
        let name = DERWriter.sequence(DERWriter.identifier("2.5.4.3"), DERWriter.utf8("x"))
        let point = DERWriter.sequence(DERWriter.value(0xA0, DERWriter.value(0xA1, name)))
        return DERWriter.sequence((0..<count).flatMap { _ in point })
    }

    /// cRLDistributionPoints
    public static let distributionPoints = "2.5.29.31"

    private static func bytes(_ hexadecimal: String) -> [UInt8] {
        let digits = hexadecimal.utf8.map { $0 < 0x3A ? $0 - 0x30 : $0 - 0x57 }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}

/// Counts the certificates and elliptic keys that OpenSSL creates on the calling thread, to show what it parsed.
public enum ParsedObjects {
    /// The numbers of certificates and elliptic keys begun while `work` ran.
    public static func count<Result>(
        in work: () throws -> Result
    ) rethrows -> (certificates: Int, curveKeys: Int, result: Result) {
        _ = registered
        counts.certificates = 0
        counts.curveKeys = 0
        let result = try work()
        return (counts.certificates, counts.curveKeys, result)
    }

    private final class Counts {
        var certificates = 0
        var curveKeys = 0
    }

    /// The counts of the calling thread.
    private static var counts: Counts {
        if let found = pthread_getspecific(key) { return Unmanaged<Counts>.fromOpaque(found).takeUnretainedValue() }
        let counts = Counts()
        pthread_setspecific(key, Unmanaged.passRetained(counts).toOpaque())
        return counts
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key) { $0.map { Unmanaged<Counts>.fromOpaque($0).release() } }
        return key
    }()

    private static let registered: Void = {
        _ = CRYPTO_get_ex_new_index(
            CRYPTO_EX_INDEX_X509, 0, nil, { _, _, _, _, _, _ in ParsedObjects.counts.certificates += 1 }, nil, nil)
        _ = CRYPTO_get_ex_new_index(
            CRYPTO_EX_INDEX_EC_KEY, 0, nil, { _, _, _, _, _, _ in ParsedObjects.counts.curveKeys += 1 }, nil, nil)
    }()
}
