internal import ArgumentParser
internal import Glibc
internal import PinproxyConfiguration
internal import PinproxySecurity
internal import PinproxyTLS

extension CA {
    struct Rotate: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rotate",
            abstract: "Replace the authority, with a period in which the old and the new one are trusted.",
            discussion: """
                Three steps, days or weeks apart:
                  pinproxy ca rotate             makes the next authority; the current one still signs
                  pinproxy ca rotate --activate  has the next one sign; the previous one is still trusted
                  pinproxy ca rotate --finish    forgets the previous one
                After each, pinproxy reload. Between the first and the second, have every program trust both: sudo \
                pinproxy ca \
                install (with --nss, --java where you use them), pinproxy env again, and what you distribute by \
                pinproxy ca show --pem. After the second, wait until no earlier connection is left.

                The next authority is next to the current one: authority.next.pem and authority.next.key; the \
                certificate of the previous one is authority.previous.pem, and its key is gone. A step that was \
                interrupted is completed by repeating it. If the current authority expires first, the next one signs \
                at once. pinproxy ca show says how far it is.
                """)

        @OptionGroup var options: ConfigurationOptions
        @Flag(help: "Have the next authority sign from now on.") var activate = false
        @Flag(help: "Stop trusting the previous authority.") var finish = false

        func validate() throws {
            if activate && finish {
                throw ValidationError("--activate and --finish are separate steps: use one of them")
            }
        }

        func run() throws {
            let snapshot = try options.load(readsPins: false)
            let files = snapshot.authorityFiles
            let state = StateFiles(directory: snapshot.stateDirectory)
            do {
                let lines = try finish ? finished(files) : activate ? activated(files) : begun(files)
                try TrustFiles.refresh(files, in: state.own)
                Standard.output(lines.joined(separator: "\n"))
            } catch let error as AuthorityError {
                throw CommandFailure(authority: error)
            }
        }

        private func begun(_ files: AuthorityFiles) throws -> [String] {
            let (next, isNew) = try files.beginRotation(at: Clock.now)
            return [
                "\(isNew ? "made" : "there is already") the next authority: \(next.subject), "
                    + "\(CalendarDate(next.notBefore)) to \(CalendarDate(next.notAfter))",
                "the current one still signs. Next: pinproxy reload; have every program trust both (sudo pinproxy "
                    + "ca install; pinproxy env again); then pinproxy ca rotate --activate",
            ]
        }

        private func activated(_ files: AuthorityFiles) throws -> [String] {
            let (current, isNew) = try files.activateNext(at: Clock.now)
            return [
                "\(isNew ? "current authority now" : "already the current authority"): \(current.subject)",
                "the previous one is still trusted. Next: pinproxy reload; when no earlier connection is left, "
                    + "pinproxy ca rotate --finish",
            ]
        }

        /// Empties the system's store first: afterwards nothing says which certificate it was.
        private func finished(_ files: AuthorityFiles) throws -> [String] {
            let previous = try files.previousCertificate(at: .min)
            let isTooEarly = try files.rotationPhase(at: Clock.now) == .begun
            if let previous, !isTooEarly {
                let store = SystemTrustStore()
                let installed = store.path(for: previous)
                if access(installed, F_OK) == 0 { try store.remove([installed]) }
            }
            try files.finishRotation(at: Clock.now)
            guard let previous else { return ["there is no previous authority"] }
            return [
                "no longer trusted: \(previous.subject)",
                "Next: pinproxy reload. Browsers and JVMs trust it until pinproxy ca remove --nss --all (--java) and "
                    + "pinproxy ca install --nss (--java)",
            ]
        }
    }
}

/// A description of one of the two authorities of a rotation.
struct RotationDescription {
    let certificate: Certificate
    let paths: AuthorityFiles
    let store: SystemTrustStore

    var text: String {
        let isPrevious = (try? paths.previousCertificate(at: .min)) == certificate
        let step =
            isPrevious
            ? "signed before, and is trusted until pinproxy ca rotate --finish"
            : "doesn't sign before pinproxy ca rotate --activate"
        let isInstalled = access(store.path(for: certificate), F_OK) == 0
        return """

            \(isPrevious ? "previous" : "next"): \(certificate.subject)
              \(step)
              valid \(CalendarDate(certificate.notBefore)) to \(CalendarDate(certificate.notAfter)), SHA-256 \
            \(certificate.sha256.hex)
              system trust: \(isInstalled ? "installed" : "not installed (sudo pinproxy ca install)")

            """
    }
}
