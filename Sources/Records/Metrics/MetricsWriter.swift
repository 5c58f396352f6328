/// Takes metrics, each family with the samples that follow it: as text for Prometheus, or for a collector.
package protocol MetricsWriter {
    /// - Parameter name: without the `_total` of counters.
    mutating func family(_ name: String, _ kind: MetricsText.Kind, _ help: String)
    mutating func sample(_ labels: [(String, String)], _ value: some BinaryInteger)
    mutating func sample(_ labels: [(String, String)], _ value: Double)
}

extension MetricsWriter {
    /// Writes a family of one sample without labels.
    package mutating func family(
        _ name: String, _ kind: MetricsText.Kind, _ help: String, _ value: some BinaryInteger
    ) {
        family(name, kind, help)
        sample([], value)
    }
}
