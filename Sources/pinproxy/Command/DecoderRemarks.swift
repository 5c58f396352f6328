internal import Configuration
internal import Security
internal import Serialization

/// Rules with bodies that can't be judged on this machine: a library that decodes them isn't installed.
enum DecoderRemarks {
    /// One for each serializer, at the first place that wants it.
    static func problems(
        in snapshot: Snapshot, missing: (ResponseRules.Serializer) -> [DecoderLibraries.Missing] = missing(for:)
    ) -> [Problem] {
        let entries = snapshot.hosts.values.lazy.filter { $0.action == .intercept }.compactMap(\.rules)
        let defaults = (snapshot.defaultRules ?? entries.first)?.defaults
        var wanted: [ResponseRules.Serializer: [Place]] = [:]
        for block in [defaults].compactMap(\.self) + entries.map(\.entry) {
            for layer in [block.own] + block.rules.map(\.layer) {
                guard let place = layer.response.places[.serializer] else { continue }
                for serializer in layer.response.values.serializers { wanted[serializer, default: []].append(place) }
            }
        }
        return ResponseRules.Serializer.allCases.compactMap { serializer in
            // What no rule wants isn't loaded.
            wanted[serializer].flatMap { problem(serializer, $0, missing(serializer)) }
        }
    }

    private static func missing(for serializer: ResponseRules.Serializer) -> [DecoderLibraries.Missing] {
        switch serializer {
        case .http, .json: []
        case .xml, .propertyList: DecoderLibraries.missingForDocuments()
        case .image: DecoderLibraries.missingForImages()
        }
    }

    private static func problem(
        _ serializer: ResponseRules.Serializer, _ places: [Place], _ missing: [DecoderLibraries.Missing]
    ) -> Problem? {
        guard let first = places.first, !missing.isEmpty else { return nil }
        let others = places.count > 1 ? ", here and in \(Count(places.count - 1, "other place"))" : ""
        return Problem(
            .warning, at: first,
            "serializer: \(serializer.rawValue) refuses \(missing.map(\.format).joined(separator: ", "))\(others): "
                + "what decodes it is not installed (apt install \(missing.map(\.package).joined(separator: " ")))")
    }
}
