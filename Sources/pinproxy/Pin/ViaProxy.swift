internal import ArgumentParser
internal import FoundationEssentials
internal import PinproxyConfiguration
internal import PinproxySecurity
internal import PinproxySession
internal import PinproxyTLS

/// The proxy of `pinproxy pin --via`.
enum ViaProxy {
    /// - Parameter credentials: `USER:PASSWORD`; nil: none.
    /// - Throws: wrong usage, without a text that may be a password.
    static func parse(_ text: String, credentials: String?) throws -> ParentProxy {
        let parent: ParentProxy
        do throws(WrittenParent) {
            parent = try WrittenParent.parse(text)
        } catch {
            throw ValidationError("--via: \(error.cause)")
        }
        guard !parent.hasCredentials else {
            throw ValidationError(
                "--via: everybody can see a command's arguments: write USER:PASSWORD into a file, and name it with "
                    + "--via-credentials")
        }
        guard let credentials else { return parent }
        let authorization = "Basic " + Data(credentials.utf8).base64EncodedString()
        return ParentProxy(host: parent.host, port: parent.port, authorization: authorization)
    }

    private static let longest = 4096

    /// The first line of a file.
    static func credentials(from path: String) throws -> String {
        let bytes: [UInt8]
        do throws(FileProblem) {
            bytes = try SmallFile.read(path, limit: longest).bytes
        } catch {
            throw CommandFailure("\(path) can't be read: \(error)")
        }
        let line = String(decoding: bytes.prefix { $0 != 0x0A && $0 != 0x0D }, as: UTF8.self)
        guard let colon = line.firstIndex(of: ":"), colon != line.startIndex,
            !line.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F })
        else { throw CommandFailure("\(path): its first line is not USER:PASSWORD") }
        return line
    }
}
