// What the serializers cost: judging 1 MiB of JSON, compared with Foundation's parser, and encoding queries. See
// ../README.md.

import Foundation
import Glibc
import PinproxySerialization

@main struct SerializationBenchmark {
    private static let rounds = 15

    static func main() throws {
        try judge()
        encode()
    }

    private static func judge() throws {
        let body = document(bytes: 1 << 20)
        var rules = ResponseRules()
        rules.serializers = [.json]
        let head = PinproxySerialization.ResponseHead(
            status: 200, contentType: ContentType("application/json"), body: .length(body.count))
        guard let judge = ResponseJudge(rules),
            case .hold(let judgement, _) = judge.verdict(on: head, inspectedBody: 8 << 20)
        else { fatalError("the rules ask for nothing") }
        let data = Data(body)
        var ours: [Double] = []
        var foundations: [Double] = []
        for _ in 0..<rounds {
            ours.append(
                processorMilliseconds {
                    guard case .pass = judgement.verdict(on: body) else { fatalError("the document is refused") }
                })
            foundations.append(try processorMilliseconds { _ = try JSONSerialization.jsonObject(with: data) })
        }
        let ratios = zip(ours, foundations).map { $0 / $1 }
        print(
            "1 MiB of JSON: judged in \(median(ours)) ms, parsed by Foundation in \(median(foundations)) ms; "
                + "median ratio \(median(ratios))")
    }

    private static func encode() {
        let text = String(repeating: "the quick brown fox ", count: 50_000)
        let small = (0..<100_000).map { ParameterValue.Pair(key: "key\($0)", value: .string("a value of \($0)")) }
        let works: [(String, [ParameterValue.Pair])] = [
            ("one text of 1 MB", [.init(key: "text", value: .string(text))]),
            ("100,000 pairs", small),
            ("a list of 100,000", [.init(key: "list", value: .array(small.map(\.value)))]),
        ]
        for (name, parameters) in works {
            var nanoseconds: [Double] = []
            var count = 0
            for _ in 0..<rounds {
                nanoseconds.append(
                    processorMilliseconds { count = QueryEncoder.encode(parameters).count } * 1e6 / Double(count))
            }
            print("query of \(name): \(median(nanoseconds)) ns a byte of \(count)")
        }
    }

    /// An array of records, as services return it.
    private static func document(bytes: Int) -> [UInt8] {
        var text = "["
        var number = 0
        while text.utf8.count < bytes {
            text +=
                #"""
                {"id":\#(number),"name":"person \#(number)","score":\#(number).25,"tags":["a","b\u00e9"],"next":null},
                """#
            number += 1
        }
        return Array((text.dropLast() + "]").utf8)
    }

    private static func processorMilliseconds(_ work: () throws -> Void) rethrows -> Double {
        var before = timespec()
        var after = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before)
        try work()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after)
        return Double(after.tv_sec - before.tv_sec) * 1e3 + Double(after.tv_nsec - before.tv_nsec) / 1e6
    }

    private static func median(_ values: [Double]) -> Double {
        (values.sorted()[values.count / 2] * 1000).rounded() / 1000
    }
}
