import Foundation
import Testing

@testable import PinproxyClients

@Suite struct FieldTextTests {
    @Test func textsFromElsewhereBecomePrintableASCII() {
        #expect(FieldText.plain("a\r\nb\tc\u{0}\u{7F}ü", longest: 100) == "a  b c???")
        #expect(
            FieldText.plain("“sha256/AAAA…” is not a valid pin", longest: 100)
                == "\"sha256/AAAA...\" is not a valid pin")
        #expect(FieldText.quoted("“a\\b”", longest: 100) == #""\"a\\b\"""#)
    }

    @Test func theLengthIsThatOfWhatIsWritten() {
        for longest in 0...12 {
            let text = FieldText.plain("12345……6789", longest: longest)
            #expect(text == String("12345......6789".prefix(longest)))
        }
    }

    /// A refusal's text may become a reason phrase, whichever module it comes from.
    @Test func everyTextOfTheSourcesHasAnASCIIForm() throws {
        let repository = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let sources = repository.appendingPathComponent("Sources")
        // Its texts are the bodies that it warms up with.
        let exempt = "Decoding/DecoderProgram.swift"
        let files = try #require(FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
        var count = 0
        for case let file as URL in files where file.pathExtension == "swift" && !file.path.hasSuffix(exempt) {
            count += 1
            let lines = try String(contentsOf: file, encoding: .utf8).split(
                separator: "\n", omittingEmptySubsequences: false)
            for (number, line) in lines.enumerated() {
                let code = line.drop { $0 == " " }
                guard !code.hasPrefix("//"), code.contains("\"") else { continue }
                for scalar in code.unicodeScalars where !scalar.isASCII {
                    let form = FieldText.plain(String(scalar), longest: 8)
                    #expect(form != "?", "\(file.lastPathComponent):\(number + 1): \(scalar) has no ASCII form")
                }
            }
        }
        #expect(count > 100, "only \(count) files were found in \(sources.path)")
    }
}
