internal import ArgumentParser
internal import Configuration
internal import Glibc
internal import Security
internal import TLS

extension CA {
    struct Rotate: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Replace the authority, with a time in which the old and the new one are trusted.",
            discussion: """
                Three steps, days or weeks apart:
                  pinproxy ca rotate             makes the next authority; the present one goes on signing
                  pinproxy ca rotate --activate  has the next one sign; the previous one is still trusted
                  pinproxy ca rotate --finish    forgets the previous one
                After each, pinproxy reload. Between the first and the second, have every program trust both: sudo pinproxy ca \
                install (with --nss, --java where you use them), pinproxy env anew, and what you distribute by \
                pinproxy ca show --pem. After the second, wait until no connection of before is left.

                The next authority lies beside the present one: authority.next.pem and authority.next.key; the certificate of the \
                previous one is authority.previous.pem, and its key is gone. A step that was interrupted is completed by \
                repeating it. If the present authority expires first, the next one signs at once. pinproxy ca show \
                says how far it is.
                """)

        @OptionGroup var options: ConfigurationOptions
        @Flag(help: "Have the next authority sign from now on.") var activate = false
        @Flag(help: "Stop trusting the previous authority.") var finish = false

        func validate() throws {
            if activate && finish { throw ValidationError("--activate and --finish are steps of their own: use one of them") }
        }

        func run() throws {
            let snapshot = try options.load(readsPins: false)
            let files = snapshot.authorityFiles
            let state = StateFiles(directory: snapshot.stateDirectory)
            let lines: [String]
            do throws(AuthorityError) {
                lines = activate ? try activated(files) : finish ? [] : try begun(files)
            } catch {
                throw CommandFailure(authority: error)
            }
            if finish { return Standard.output(try finished(files, state)) }
            try TrustFiles.refresh(files, in: state.own)
            Standard.output(lines.joined(separator: "\n"))
        }

        private func begun(_ files: AuthorityFiles) throws(AuthorityError) -> [String] {
            let (next, isNew) = try files.beginRotation(at: Clock.now)
            return [
                "\(isNew ? "made" : "there is already") the next authority: \(next.subject), "
                    + "\(CalendarDate(next.notBefore)) to \(CalendarDate(next.notAfter))",
                "the present one goes on signing. Next: pinproxy reload; have every program trust both (sudo pinproxy ca install; "
                    + "pinproxy env anew); then pinproxy ca rotate --activate",
            ]
        }

        private func activated(_ files: AuthorityFiles) throws(AuthorityError) -> [String] {
            let (current, isNew) = try files.activateNext(at: Clock.now)
            return [
                "\(isNew ? "present authority now" : "already the present authority"): \(current.subject)",
                "the previous one is still trusted. Next: pinproxy reload; when no connection of before is left, pinproxy ca rotate --finish",
            ]
        }

        /// The store first: without its file nobody knows the certificate any more.
        private func finished(_ files: AuthorityFiles, _ state: StateFiles) throws -> String {
            do {
                let previous = try files.previousCertificate(at: .min)
                guard try files.rotationPhase(at: Clock.now) != .begun, let previous else {
                    try files.finishRotation(at: Clock.now)
                    return "there is no previous authority"
                }
                let store = SystemTrustStore()
                let installed = store.path(for: previous)
                if access(installed, F_OK) == 0 { try store.remove([installed]) }
                try files.finishRotation(at: Clock.now)
                try TrustFiles.refresh(files, in: state.own)
                return "no longer trusted: \(previous.subject)\nNext: pinproxy reload. Browsers and JVMs keep it until "
                    + "pinproxy ca remove --nss --all (or --java) and pinproxy ca install --nss"
            } catch let error as AuthorityError {
                throw CommandFailure(authority: error)
            }
        }
    }
}

/// One of the two authorities of a rotation, for people.
struct RotationDescription {
    let certificate: Certificate
    let paths: AuthorityFiles
    let store: SystemTrustStore

    var text: String {
        let isPrevious = (try? paths.previousCertificate(at: .min)) == certificate
        let step = isPrevious
            ? "signed before, and is trusted until pinproxy ca rotate --finish" : "doesn't sign before pinproxy ca rotate --activate"
        let isInstalled = access(store.path(for: certificate), F_OK) == 0
        return """

            \(isPrevious ? "previous" : "next"): \(certificate.subject)
              \(step)
              valid \(CalendarDate(certificate.notBefore)) to \(CalendarDate(certificate.notAfter)), SHA-256 \(certificate.sha256.hex)
              system trust: \(isInstalled ? "installed" : "not installed (sudo pinproxy ca install)")

            """
    }
}
