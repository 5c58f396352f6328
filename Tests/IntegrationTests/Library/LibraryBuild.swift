import Foundation

/// Compiles programs against the libraries that `swift build` has put beside the tests.
enum LibraryBuild {
    /// Folders in `Sources` of the modules that a program is linked with.
    private static let folders = [
        "Addresses", "CShims", "CXML2", "Caching", "DiskStore", "EventLoop", "HTTP2", "HTTPWire", "PinnedSession",
        "Reachability", "Security", "Serialization", "Session", "TLS", "Transport",
    ]
    private static let libraries = [
        "event_core", "ssl", "crypto", "cares", "idn2", "psl", "mnl", "nghttp2", "sqlite3", "z", "brotlidec", "zstd",
    ]

    /// Where `swift build` put what it made, beside the tests' own executable.
    static let directory = (ProxyProcess.executable as NSString).deletingLastPathComponent

    private static func module(in folder: String) -> String {
        switch folder {
        case "PinnedSession": folder
        case "CShims", "CXML2": "CPinproxy" + folder.dropFirst()
        default: "Pinproxy" + folder
        }
    }

    /// What a compiler needs to import the products.
    static func importing() throws -> [String] {
        let sources = Documentation.repository + "/Sources"
        let libraries = try FileManager.default.contentsOfDirectory(atPath: sources)
            .flatMap { ["\(sources)/\($0)/module.modulemap", "\(sources)/\($0)/include/module.modulemap"] }
            .filter(FileManager.default.fileExists(atPath:))
        let maps = libraries.sorted() + ["\(directory)/CPinproxyShims.build/module.modulemap"]
        return ["-I", "\(directory)/Modules", "-Xcc", "-I\(sources)/CXML2/include"]
            + maps.flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] }
    }

    /// The object files of a folder's module. Those of files that have gone stay in its build folder.
    private static func objects(of folder: String) throws -> [String] {
        let files = try FileManager.default.subpathsOfDirectory(atPath: "\(Documentation.repository)/Sources/\(folder)")
        let sources = Set(files.map { ($0 as NSString).lastPathComponent })
        let build = "\(directory)/\(module(in: folder)).build"
        return try FileManager.default.contentsOfDirectory(atPath: build)
            .filter { $0.hasSuffix(".o") && (!$0.hasSuffix(".swift.o") || sources.contains(String($0.dropLast(2)))) }
            .sorted().map { "\(build)/\($0)" }
    }

    /// Compiles a file and links it with the libraries.
    static func compile(_ main: String, to program: String, in bed: TestBed) async throws -> Run {
        try await tool(
            bed,
            ["swiftc", "-swift-version", "6", "-o", program, main] + importing() + folders.flatMap(objects(of:))
                + libraries.map { "-l\($0)" } + (Sanitizer.isOn ? ["-sanitize=address"] : []))
    }

    /// Runs a tool of the compiler that built the tests.
    static func tool(_ bed: TestBed, _ arguments: [String]) async throws -> Run {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin"
        let process = try await bed.start(["/usr/bin/env"] + arguments, environment: ["PATH": path])
        let ending = try await process.ending()
        return Run(
            arguments: arguments, ending: ending, output: await process.output.text, errors: await process.errors.text)
    }
}
