internal import ArgumentParser
internal import Glibc
internal import PinproxyBundles
internal import PinproxyConfiguration
internal import PinproxySecurity
internal import PinproxyTLS

/// The file that the commands read and write.
struct BundlePath: ParsableArguments {
    @Argument(help: ArgumentHelp("The bundle's file.", valueName: "file"), completion: .file()) var file: String

    func read() throws -> BundleDocument { try Self.read(file) }

    /// Reads the document; empty if there is no file yet.
    func readIfPresent() throws -> BundleDocument {
        access(file, F_OK) != 0 && errno == ENOENT ? BundleDocument() : try read()
    }

    /// Replaces the file, whole.
    func write(_ document: BundleDocument) throws {
        let bytes: [UInt8]
        do throws(BundleError) { bytes = try document.bytes() } catch { throw Self.failure(file, error) }
        do throws(FileProblem) { try NewFile.write(bytes, to: file, mode: 0o644) } catch {
            throw CommandFailure("\(file.printable): \(error)")
        }
    }

    static func bytes(_ file: String) throws -> [UInt8] {
        do throws(FileProblem) {
            // One byte more, so that the reader says that it is too large.
            return try SmallFile.read(file, limit: BundleDocument.bytesLimit + 1).bytes
        } catch .tooLarge {
            throw failure(file, .tooLarge(limit: BundleDocument.bytesLimit))
        } catch {
            throw CommandFailure("\(file.printable): \(error)")
        }
    }

    static func read(_ file: String) throws -> BundleDocument {
        let bytes = try bytes(file)
        do throws(BundleError) { return try BundleDocument(bytes) } catch { throw failure(file, error) }
    }

    static func failure(_ file: String, _ error: BundleError) -> CommandFailure {
        CommandFailure("\(file.printable): \(error)")
    }
}

/// `--expires`: a time from now, or a date.
enum ExpiryArgument {
    static func time(_ text: String, from now: UnixTime) throws(ValidationError) -> UnixTime {
        let time: UnixTime
        if let date = DateText.parse(text) {
            time = date
        } else if let duration = Duration(written: text) {
            let (sum, isTooLong) = now.addingReportingOverflow(duration.components.seconds)
            time = isTooLong ? .max : sum
        } else {
            throw ValidationError(
                "--expires: \"\(text.printable)\" is neither a time (90d, 12h) nor a date (2027-06-30, "
                    + "2027-06-30T12:00:00Z)")
        }
        guard time > now else { throw ValidationError("--expires: \(text.printable) is not in the future") }
        guard time < BundleTime.end else {
            throw ValidationError("--expires: \(text.printable) is after the year 9999")
        }
        return time
    }
}
