/// The pin files beside a main one: those that its `include` names, and those in its directory (`pins.d` for
/// `pins.yaml`). Teams and tools keep theirs there. They contain entries only; the main file's `defaults` apply.
struct FurtherPinFiles {
    /// The kept copy of a configuration has at most 256 files.
    static let limit = 200

    /// Their paths in reading order, and where each is named.
    private(set) var list: [(path: String, place: Place)] = []
    private let main: String
    private let findings: Findings

    /// - Parameter place: where the main file is named.
    init(of main: String, _ root: Section, namedAt place: Place) {
        self.main = main
        findings = root.findings
        if let value = root.nonNull("include") {
            for element in root.elements(value, "include") ?? [] {
                guard let path = root.scalar(element, "include", .path) else { continue }
                add(FileContents.resolve(path, relativeTo: main), at: root.place(of: element), "include: ")
            }
        }
        let directory = Self.directory(of: main)
        add("\(directory)/*.yaml", at: Place(file: directory), "")
        warnOfOthers(in: directory)
        if list.count > Self.limit {
            findings.error(place, "there are \(list.count) further pin files; at most \(Self.limit) are read")
            list.removeLast(list.count - Self.limit)
        }
    }

    /// `pins.d` for `pins.yaml`.
    static func directory(of main: String) -> String {
        for ending in [".yaml", ".yml"] where main.hasSuffix(ending) { return main.dropLast(ending.count) + ".d" }
        return main + ".d"
    }

    private mutating func add(_ pattern: String, at place: Place, _ prefix: String) {
        do throws(Reason) {
            let paths = try findings.sources.paths(pattern)
            if paths.isEmpty, !prefix.isEmpty {
                findings.error(place, "\(prefix)\(pattern) names no file")
            }
            for path in paths {
                if path == main || list.contains(where: { $0.path == path }) {
                    findings.error(place, "\(prefix)\(path) is read already")
                } else {
                    list.append((path, prefix.isEmpty ? Place(file: path) : place))
                    let key = prefix.isEmpty ? FileListing.split(path).directory : "include"
                    findings.note(
                        NamedFile(name: written(path), path: path, purpose: .policy, key: key, place: place))
                }
            }
        } catch {
            findings.error(place, "\(prefix)\(prefix.isEmpty ? "" : "\(pattern): ")\(error.text)")
        }
    }

    /// Relative to the main file, if it is below that.
    private func written(_ path: String) -> String {
        let above = main.prefix(upTo: main.lastIndex(of: "/").map(main.index(after:)) ?? main.startIndex)
        return path.hasPrefix(above) ? String(path.dropFirst(above.count)) : path
    }

    /// Such a file would pin nothing, without an error.
    private func warnOfOthers(in directory: String) {
        guard let others = try? findings.sources.paths("\(directory)/*.yml") else { return }
        for path in others {
            findings.warning(Place(file: path), "ignored: the name doesn't end in .yaml")
        }
    }

    /// The readable files, with their paths.
    func sections(_ findings: Findings) -> [(root: Section, file: String)] {
        list.compactMap { path, place in
            guard let section = PinFile.section(of: path, namedAt: place, "", findings) else { return nil }
            refuseKeys(of: section)
            return (section, path)
        }
    }

    private func refuseKeys(of section: Section) {
        for key in ["defaults", "include"] {
            if let value = section.value(key) {
                section.error(value, "\"\(key)\" belongs in the main pin file, \(main)")
            }
        }
    }
}
