// What it takes to judge 1 MiB of JSON, beside what Foundation's parser takes for it. See ../README.md.

import Foundation
import Glibc
import Serialization

@main struct JudgingBenchmark {
    private static let rounds = 15

    static func main() throws {
        let body = document(bytes: 1 << 20)
        var rules = ResponseRules()
        rules.serializers = [.json]
        let head = Serialization.ResponseHead(
            status: 200, contentType: ContentType("application/json"), contentLength: body.count)
        guard let judge = ResponseJudge(rules), case .hold(let judgement, _) = judge.verdict(on: head, inspectedBody: 8 << 20)
        else { fatalError("the rules ask for nothing") }
        let data = Data(body)
        var ours: [Double] = []
        var foundations: [Double] = []
        for _ in 0..<rounds {
            ours.append(processorMilliseconds {
                guard case .pass = judgement.verdict(on: body) else { fatalError("the document is refused") }
            })
            foundations.append(try processorMilliseconds { _ = try JSONSerialization.jsonObject(with: data) })
        }
        let ratios = zip(ours, foundations).map { $0 / $1 }
        print(
            "1 MiB of JSON: judged in \(median(ours)) ms, parsed by Foundation in \(median(foundations)) ms; "
                + "median ratio \(median(ratios))")
    }

    /// An array of records, as services answer with.
    private static func document(bytes: Int) -> [UInt8] {
        var text = "["
        var number = 0
        while text.utf8.count < bytes {
            text += #"{"id":\#(number),"name":"person \#(number)","score":\#(number).25,"tags":["a","b\u00e9"],"next":null},"#
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
