/// The control group of a process, as `/proc/PID/cgroup` has it (cgroups(7)).
enum ControlGroup {
    /// Units that processes can be in (systemd.unit(5)).
    private static let suffixes = [".service", ".scope", ".socket", ".mount", ".swap"]

    /// The first part of the path that is not a slice. A user's own manager works below `user@UID.service`, so that
    /// users can't forge names of system units. Nil: none, or a group that isn't visible here.
    static func unit(in text: String) -> String? {
        // systemd's hierarchy first, if there are several.
        let lines = text.split(separator: "\n").map {
            $0.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        }
        let line =
            lines.first { $0.count == 3 && $0[1] == "name=systemd" }
            ?? lines.first { $0.count == 3 && $0[0] == "0" && $0[1].isEmpty }
        guard let path = line?[2], path.hasPrefix("/") else { return nil }
        for part in path.split(separator: "/") {
            guard part != ".." else { return nil }
            if part.hasSuffix(".slice") { continue }
            // Reserved names are escaped by an underscore.
            let name = part.hasPrefix("_") ? part.dropFirst() : part
            return suffixes.contains { name.hasSuffix($0) && name.count > $0.count } ? String(name) : nil
        }
        return nil
    }
}
