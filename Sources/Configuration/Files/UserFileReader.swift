extension DaemonFileReader {
    func users(_ section: Section) -> UserFile? {
        guard let value = section.nonNull("users"), let written = section.scalar(value, "users", .path) else {
            return nil
        }
        let path = FileContents.resolve(written, relativeTo: file)
        guard readsPrivateFiles else { return UserFile(path: path, lines: []) }
        switch FileContents.read(path, limit: 16 << 20) {
        case .failure(let reason):
            section.error(value, "users: \(path): \(reason.text)")
            return nil
        case .success(let bytes):
            guard let text = String(validating: bytes, as: UTF8.self) else {
                section.error(value, "users: \(path) is not UTF-8")
                return nil
            }
            return read(text, path, section, value)
        }
    }

    private func read(_ text: String, _ path: String, _ section: Section, _ value: YAMLValue) -> UserFile {
        var lines: [String] = []
        var names: [Substring: Int] = [:]
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            guard let first = line.first, first != "#" else { continue }
            let place = Place(file: path, line: index + 1, column: 1)
            guard let colon = line.firstIndex(of: ":"), colon != line.startIndex else {
                section.error(place, "expected NAME:HASH; make the line with: htpasswd -nB NAME")
                continue
            }
            let name = line[..<colon]
            if line[line.index(after: colon)...].wholeMatch(of: /\$2[aby]\$[0-9]{2}\$[.\/A-Za-z0-9]{53}/) == nil {
                section.error(
                    place, "the password of \"\(name)\" is not a bcrypt hash; make the line with: htpasswd -nB \(name)")
            }
            if name == "pinproxy-run" {
                section.error(place, "\"pinproxy-run\" is the name that runs of pinproxy exec are known by: choose another")
            }
            if let before = names.updateValue(index + 1, forKey: name) {
                section.error(place, "user \"\(name)\" is already in line \(before)")
            }
            lines.append(String(line))
        }
        if lines.isEmpty { section.warning(value, "users: \(path) names nobody, so nobody can use the proxy") }
        return UserFile(path: path, lines: lines)
    }
}
