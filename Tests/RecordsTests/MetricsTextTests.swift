import Testing

@testable import PinproxyRecords

@Suite struct MetricsTextTests {
    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test func aCounterIsWrittenAsEachFormatHasIt() {
        func written(_ format: MetricsText.Format) -> String {
            var text = MetricsText(format)
            text.family("a_seconds", .counter, "Some \\ help.")
            text.sample([("entry", "a\"b\\c\nd")], 7)
            text.sample([], 0.25)
            return self.text(text.finished())
        }
        #expect(
            written(.prometheus)
                == "# HELP a_seconds_total Some \\\\ help.\n# TYPE a_seconds_total counter\n"
                + "a_seconds_total{entry=\"a\\\"b\\\\c\\nd\"} 7\na_seconds_total 0.25\n")
        #expect(
            written(.openMetrics)
                == "# HELP a_seconds Some \\\\ help.\n# TYPE a_seconds counter\n# UNIT a_seconds seconds\n"
                + "a_seconds_total{entry=\"a\\\"b\\\\c\\nd\"} 7\na_seconds_total 0.25\n# EOF\n")
    }

    @Test func everyTimeFallsIntoTheBucketThatHoldsIt() {
        for (index, bound) in LatencyHistogram.bounds.enumerated() {
            #expect(LatencyHistogram.bucket(bound) == index)
            #expect(LatencyHistogram.bucket(bound + 1) == index + 1)
        }
        #expect(LatencyHistogram.bucket(0) == 0 && LatencyHistogram.bucket(.max) == 19)
    }

    @Test func aHistogramsBucketsAreCumulative() {
        var histogram = LatencyHistogram()
        for time: UInt64 in [50_000, 300_000, 300_000, 200_000_000_000] { histogram.note(time) }
        var sum = LatencyHistogram()
        sum.add(histogram)
        sum.add(histogram)
        var text = MetricsText(.prometheus)
        text.family("t_seconds", .histogram, "h")
        text.sample([("a", "b")], sum)
        let lines = self.text(text.finished()).split(separator: "\n")
        #expect(lines.contains("t_seconds_bucket{a=\"b\",le=\"0.0001\"} 2"))
        #expect(lines.contains("t_seconds_bucket{a=\"b\",le=\"0.0005\"} 6"))
        #expect(lines.contains("t_seconds_bucket{a=\"b\",le=\"100.0\"} 6"))
        #expect(lines.contains("t_seconds_bucket{a=\"b\",le=\"+Inf\"} 8"))
        #expect(lines.contains("t_seconds_count{a=\"b\"} 8"))
        #expect(lines.contains { $0.hasPrefix("t_seconds_sum{a=\"b\"} 400.0013") })
    }

    @Test(arguments: [
        (nil, MetricsText.Format.prometheus), ("*/*", .prometheus), ("text/plain", .prometheus),
        ("application/openmetrics-text;version=1.0.0,text/plain;q=0.5", .openMetrics),
        ("Application/OpenMetrics-Text", .openMetrics),
        ("application/openmetrics-text;q=0, text/plain", .prometheus), ("application/openmetrics-text2", .prometheus),
        ("", .prometheus),
    ])
    func theFormatIsChosenByWhatIsAskedFor(_ accept: String?, _ format: MetricsText.Format) {
        #expect(MetricsText.Format(accept: accept) == format)
    }
}
