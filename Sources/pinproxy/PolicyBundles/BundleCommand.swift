internal import ArgumentParser
internal import PinproxyBundles
internal import PinproxySecurity
internal import PinproxyTLS

struct BundleCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bundle",
        abstract: "Make, sign, verify, compare and rehearse signed policy for many machines.",
        discussion: """
            A bundle is a pin file with the files that it names, in one file that any web server serves. It is signed \
            with Ed25519 keys by a threshold of people (docs/bundles.md):
              root       says which keys have which role; its keys are kept offline
              bundle     signs the policy; the keys of those who review it
              timestamp  says which bundle is the current one, for some days; the key of a machine

            Private keys are made by openssl genpkey -algorithm ed25519, and read from a file that nobody else may \
            read, or from standard input. Every step changes one file; the last step of publishing is to copy it to \
            where it is served.

            Examples:
              pinproxy bundle key root-1.pem
              pinproxy bundle root policy.bundle --root KEY --bundle KEY --timestamp KEY --expires 365d
              pinproxy bundle sign policy.bundle --role root --key-file root-1.pem
              pinproxy bundle create policy.bundle --pins pins.yaml --expires 90d
              pinproxy bundle sign policy.bundle --role bundle --key-file reviewer-1.pem
              pinproxy bundle timestamp policy.bundle --expires 7d
              pinproxy bundle sign policy.bundle --role timestamp --key-file timestamp.pem
              pinproxy bundle verify policy.bundle --key KEY
              pinproxy bundle diff served.bundle policy.bundle
              pinproxy bundle rehearse policy.bundle
            """,
        subcommands: [
            BundleKeyCommand.self, BundleRootCommand.self, BundleCreateCommand.self, BundleTimestampCommand.self,
            BundleSignCommand.self, BundleVerifyCommand.self, BundleShowCommand.self, BundleDiffCommand.self,
            BundleRehearseCommand.self,
        ])
}

struct BundleKeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key", abstract: "Print the public half of an Ed25519 key, as roots and configurations write it.",
        discussion: """
            The file holds a private or a public key in PEM. Of a private key only the public half is printed. - is \
            standard input.
            """)

    @Argument(help: ArgumentHelp("The key's file, or - for standard input.", valueName: "file"), completion: .file())
    var file: String

    func run() throws {
        let bytes: [UInt8]
        do { bytes = try file == "-" ? KeyInput.standardInput() : SmallFile.read(file).bytes } catch let error
            as FileProblem
        {
            throw CommandFailure("\(file.printable): \(error)")
        }
        do throws(BundleKeyError) {
            if PEM.labels(in: bytes).contains("PUBLIC KEY") {
                let key: PublicKey
                do throws(KeyError) { key = try PublicKey(pem: bytes) } catch { throw .unreadable("\(error)") }
                return Standard.output(try BundleKey(key).text)
            }
            Standard.output(try SigningKey(pem: bytes).publicKey.text)
        } catch {
            throw CommandFailure("\(file.printable): \(error)")
        }
    }
}
