internal import ArgumentParser
internal import Glibc
internal import PinproxyBundles
internal import PinproxySecurity
internal import PinproxyTLS

/// Private keys, which are never words of a command line.
enum KeyInput {
    private static let limit = 64 << 10

    /// - Parameter file: - is standard input; any other file must be closed to other users.
    static func signingKey(_ file: String) throws -> SigningKey {
        let bytes: [UInt8]
        if file == "-" {
            bytes = try standardInput()
        } else {
            do throws(PrivateFileProblem) { bytes = try PrivateFile.read(file) } catch {
                throw CommandFailure("\(file.printable): \(error)")
            }
        }
        do throws(BundleKeyError) { return try SigningKey(pem: bytes) } catch {
            throw CommandFailure("\(file == "-" ? "standard input" : file.printable): \(error)")
        }
    }

    static func standardInput() throws -> [UInt8] {
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(STDIN_FILENO, &part, part.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw CommandFailure("standard input: \(systemReason())") }
            if count == 0 { return bytes }
            bytes += part[..<count]
            guard bytes.count <= limit else {
                throw CommandFailure("standard input: longer than \(limit >> 10) KiB, so not a key")
            }
        }
    }

    /// Keys on the command line.
    /// - Throws: wrong usage.
    static func publicKeys(_ texts: [String]) throws(ValidationError) -> [BundleKey] {
        var keys: [BundleKey] = []
        for text in texts {
            do throws(BundleKeyError) { keys.append(try BundleKey(text)) } catch { throw ValidationError("\(error)") }
        }
        return keys
    }
}
