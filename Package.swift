// swift-tools-version: 6.2
import PackageDescription

/// Each target is a module: it has one job, and imports only what stands here, which `make test` checks.
/// The language settings are the same for all of them.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    // Views of received heads can't outlive the bytes that they are ranges of.
    .enableExperimentalFeature("Lifetimes"),
    .treatAllWarnings(as: .error),
]

/// A module's name. Swift allows each name once in a program, so that `TLS` could be another package's.
func moduleName(_ name: String) -> String {
    switch name {
    case "pinproxy": name
    case _ where name.hasPrefix("PinnedSession"): name
    case _ where name.dropFirst().first?.isUppercase == true && name.hasPrefix("C"): "CPinproxy" + name.dropFirst()
    default: "Pinproxy" + name
    }
}

func modules(_ names: [String]) -> [Target.Dependency] { names.map { .target(name: moduleName($0)) } }

/// - Parameters:
///   - place: in `Sources`, unless given.
///   - settings: `.strictMemorySafety()` where each step that could break memory is marked `unsafe`.
func module(
    _ name: String, _ imports: [String], _ products: [Target.Dependency] = [], at place: String? = nil,
    resources: [Resource] = [], settings more: [SwiftSetting] = []
) -> Target {
    .target(
        name: moduleName(name), dependencies: modules(imports) + products, path: place ?? "Sources/" + name,
        resources: resources, swiftSettings: settings + more)
}

func program(
    _ name: String, _ imports: [String], _ products: [Target.Dependency] = [], at place: String,
    exclude: [String] = []
) -> Target {
    .executableTarget(
        name: moduleName(name), dependencies: modules(imports) + products, path: place, exclude: exclude,
        swiftSettings: settings)
}

/// - Parameter target: nil: the one of that name.
func tests(
    _ name: String, of target: String? = nil, _ imports: [String] = [], _ products: [Target.Dependency] = [],
    exclude: [String] = []
) -> Target {
    .testTarget(
        name: name + "Tests", dependencies: modules([target ?? name] + imports) + products, exclude: exclude,
        swiftSettings: settings)
}

/// - Parameter pkgConfig: nil for a library that is loaded at its first use: what pkg-config says would be linked, and
///   be needed at every start of a program.
func system(_ name: String, pkgConfig: String?, package: String) -> Target {
    .systemLibrary(
        name: moduleName(name), path: "Sources/" + name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

/// A product of another package, which is fetched only with one of these traits.
func product(_ name: String, of package: String, with traits: Set<String>) -> Target.Dependency {
    .product(name: name, package: package, condition: .when(traits: traits))
}

let logging = product("Logging", of: "swift-log", with: ["CommandLine", "Logging"])
let metrics = product("CoreMetrics", of: "swift-metrics", with: ["Metrics"])
let lifecycle = product("ServiceLifecycle", of: "swift-service-lifecycle", with: ["ServiceLifecycle"])
let argumentParser = product("ArgumentParser", of: "swift-argument-parser", with: ["CommandLine"])

let package = Package(
    name: "pinproxy",
    products: [
        .executable(name: "pinproxy", targets: ["pinproxy"]),
        // For programs: docs/library.md.
        .library(name: "PinnedSession", targets: ["PinnedSession"]),
        .library(name: "PinnedSessionLogging", targets: ["PinnedSessionLogging"]),
        .library(name: "PinnedSessionMetrics", targets: ["PinnedSessionMetrics"]),
        .library(name: "PinnedSessionService", targets: ["PinnedSessionService"]),
        .library(name: "PinnedSessionFoundation", targets: ["PinnedSessionFoundation"]),
        .library(name: "PinproxySecurity", targets: ["PinproxySecurity"]),
        .library(name: "PinproxySerialization", targets: ["PinproxySerialization"]),
        .library(name: "PinproxyReachability", targets: ["PinproxyReachability"]),
    ],
    traits: [
        // A package that only wants libraries says `traits: []`: none of the packages below is fetched for it.
        .trait(name: "CommandLine", description: "The program pinproxy"),
        .trait(name: "Logging", description: "PinnedSessionLogging, with swift-log"),
        .trait(name: "Metrics", description: "PinnedSessionMetrics, with swift-metrics"),
        .trait(name: "ServiceLifecycle", description: "PinnedSessionService, with swift-service-lifecycle"),
        .default(enabledTraits: ["CommandLine", "Logging", "Metrics", "ServiceLifecycle"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        system("CLibevent", pkgConfig: "libevent_core", package: "libevent-dev"),
        system("COpenSSL", pkgConfig: "openssl", package: "libssl-dev"),
        system("CCares", pkgConfig: "libcares", package: "libc-ares-dev"),
        system("CSystemd", pkgConfig: nil, package: "libsystemd-dev"),
        system("CCrypt", pkgConfig: "libcrypt", package: "libcrypt-dev"),
        system("CIDN2", pkgConfig: "libidn2", package: "libidn2-dev"),
        system("CPSL", pkgConfig: "libpsl", package: "libpsl-dev"),
        system("CMNL", pkgConfig: "libmnl", package: "libmnl-dev"),
        system("CSeccomp", pkgConfig: "libseccomp", package: "libseccomp-dev"),
        system("CNGHTTP2", pkgConfig: "libnghttp2", package: "libnghttp2-dev"),
        system("CSQLite", pkgConfig: "sqlite3", package: "libsqlite3-dev"),
        system("CYAML", pkgConfig: "yaml-0.1", package: "libyaml-dev"),
        system("CZlib", pkgConfig: "zlib", package: "zlib1g-dev"),
        system("CBrotli", pkgConfig: "libbrotlidec", package: "libbrotli-dev"),
        system("CZstd", pkgConfig: "libzstd", package: "libzstd-dev"),
        // Decoders of documents and images.
        .target(name: moduleName("CXML2"), path: "Sources/CXML2"),
        system("CPNG", pkgConfig: nil, package: "libpng-dev"),
        system("CTurboJPEG", pkgConfig: nil, package: "libturbojpeg0-dev"),
        system("CGIF", pkgConfig: nil, package: "libgif-dev"),
        system("CWebP", pkgConfig: nil, package: "libwebp-dev"),
        system("CTIFF", pkgConfig: nil, package: "libtiff-dev"),
        system("CAVIF", pkgConfig: nil, package: "libavif-dev"),
        .target(
            name: moduleName("CShims"), dependencies: modules(["CLibevent", "COpenSSL", "CCares"]),
            path: "Sources/CShims"),

        module("Addresses", [], settings: [.strictMemorySafety()]),
        module("EventLoop", ["Addresses", "CLibevent", "CCares", "CMNL", "CShims"]),
        module("TLS", ["Addresses", "COpenSSL", "CShims"]),
        module("HTTPWire", ["Addresses"], settings: [.strictMemorySafety()]),
        module("Caching", ["HTTPWire"], settings: [.strictMemorySafety()]),
        module("HTTP2", ["HTTPWire", "CNGHTTP2"]),
        module("Security", ["Addresses", "TLS", "CShims", "CIDN2", "CPSL"]),
        module("DiskStore", ["TLS", "CShims", "CSQLite"]),
        module("Reachability", ["EventLoop", "CMNL"]),
        module("LocalPeers", ["EventLoop", "CMNL", "CShims"]),
        module(
            "Serialization",
            [
                "CXML2", "CZlib", "CBrotli", "CZstd", "CPNG", "CTurboJPEG", "CGIF", "CWebP", "CTIFF", "CAVIF",
            ]),
        module("Transport", ["EventLoop", "TLS"]),
        module("Isolation", ["Transport", "HTTPWire", "EventLoop", "CMNL", "CShims"]),
        module(
            "Session",
            [
                "Transport", "Security", "Serialization", "HTTPWire", "Caching", "DiskStore", "HTTP2", "Reachability",
                "EventLoop", "TLS", "Addresses",
            ]),
        // What programs see of the session manager.
        module(
            "PinnedSession",
            ["Session", "Transport", "Security", "Serialization", "HTTPWire", "EventLoop", "TLS"],
            settings: [.strictMemorySafety()]),
        // A session among a server's services, with its log and its metrics.
        module("PinnedSessionLogging", ["PinnedSession"], [logging]),
        module("PinnedSessionMetrics", ["PinnedSession"], [metrics]),
        module("PinnedSessionService", ["PinnedSession"], [lifecycle]),
        // The same with URLRequest and HTTPURLResponse, for programs that import FoundationNetworking.
        module("PinnedSessionFoundation", ["PinnedSession"]),
        module("Decoding", ["Session", "Serialization", "EventLoop", "CSeccomp", "CShims"]),
        module("Bundles", ["Serialization", "Security", "TLS"], settings: [.strictMemorySafety()]),
        module(
            "Configuration",
            ["Bundles", "Security", "Serialization", "Session", "HTTPWire", "EventLoop", "TLS", "Addresses", "CYAML"]),
        module(
            "Records",
            [
                "Configuration", "Session", "Serialization", "Security", "Transport", "HTTPWire", "HTTP2", "TLS",
                "EventLoop",
            ],
            [logging]),
        module(
            "Clients",
            [
                "Records", "Configuration", "Session", "Serialization", "Security", "Transport", "HTTPWire", "HTTP2",
                "TLS", "LocalPeers", "EventLoop", "Addresses", "CCrypt",
            ],
            [logging]),
        module(
            "Daemon",
            [
                "Clients", "Records", "Configuration", "Decoding", "Session", "Serialization", "Security", "Transport",
                "HTTPWire", "Caching", "HTTP2", "TLS", "DiskStore", "Bundles", "Reachability", "LocalPeers",
                "EventLoop",
            ],
            [logging],
            // The status page, within the program.
            resources: ["index.html", "page.css", "page.js", "pins.js", "refusals.js", "incidents.js", "icon.svg"].map {
                .embedInCode("Page/\($0)")
            }),
        program(
            "pinproxy",
            [
                "Daemon", "Clients", "Records", "Isolation", "LocalPeers", "Configuration", "Decoding", "Session",
                "Serialization", "Security", "Bundles", "HTTPWire", "EventLoop", "TLS", "CSystemd",
            ],
            [argumentParser, logging], at: "Sources/pinproxy"),

        program("HostBenchmark", ["Configuration", "Security"], at: "Benchmarks/Hosts"),
        program("SerializationBenchmark", ["Serialization"], at: "Benchmarks/Serialization"),

        // Chains for the tests are minted here, by code that the product does not contain.
        module("TestAuthority", ["COpenSSL", "CShims"], at: "Tests/TestAuthority"),
        tests("Addresses"),
        tests("EventLoop"),
        tests("TLS", ["COpenSSL", "TestAuthority"]),
        tests("HTTPWire"),
        tests("Caching", ["HTTPWire"]),
        tests("HTTP2", ["HTTPWire", "CNGHTTP2"]),
        tests("Security", ["Addresses", "TLS", "TestAuthority"]),
        // Images, for the tests of who decodes them, and where.
        module("TestBodies", ["Serialization"], at: "Tests/TestBodies"),
        tests("Serialization", ["TestBodies"]),
        // Stores without end, until a test kills it.
        program("StoringProbe", ["DiskStore", "TLS"], at: "Tests/StoringProbe"),
        tests("DiskStore", ["StoringProbe", "TLS", "CSQLite"]),
        tests("Reachability", ["EventLoop"]),
        tests("LocalPeers", ["EventLoop"]),
        tests("Transport", ["EventLoop", "TLS", "TestAuthority"]),
        tests("Isolation", ["HTTPWire", "EventLoop"]),
        tests(
            "Session",
            [
                "Transport", "Security", "Serialization", "HTTPWire", "Caching", "HTTP2", "Reachability", "EventLoop",
                "TLS", "CLibevent", "TestAuthority",
            ]),
        tests("PinnedSession", ["Serialization", "HTTPWire"]),
        // Tries what a confined process may not do.
        program("ConfinementProbe", ["Decoding", "CSeccomp"], at: "Tests/ConfinementProbe"),
        tests(
            "Decoding",
            ["ConfinementProbe", "pinproxy", "Session", "Serialization", "EventLoop", "TestBodies", "CSeccomp"],
            exclude: ["Peers"]),
        tests("Bundles", ["Serialization", "Security", "TLS"]),
        tests(
            "Configuration", ["Bundles", "Security", "Serialization", "Session", "HTTPWire", "TLS", "TestAuthority"]),
        tests(
            "Records",
            ["Configuration", "Session", "Security", "HTTPWire", "HTTP2", "TLS", "EventLoop", "TestAuthority"],
            [logging]),
        tests(
            "Clients",
            [
                "Configuration", "Session", "Security", "Transport", "HTTPWire", "TLS", "Reachability", "LocalPeers",
                "EventLoop",
            ],
            [logging]),
        tests(
            "Daemon",
            ["Clients", "Records", "Configuration", "Session", "Security", "HTTPWire", "TLS", "EventLoop"],
            [logging]),
        tests(
            "Command", of: "pinproxy",
            [
                "Daemon", "Clients", "Records", "Session", "Configuration", "Serialization", "Security", "Bundles",
                "Isolation", "TLS", "TestAuthority",
            ],
            [argumentParser]),
        tests(
            "Integration", of: "pinproxy",
            [
                "Daemon", "Clients", "PinnedSession", "PinnedSessionFoundation", "PinnedSessionLogging",
                "PinnedSessionMetrics", "PinnedSessionService", "Security", "Serialization", "TestAuthority",
                "TestBodies",
            ],
            [logging, metrics, lifecycle, product("MetricsTestKit", of: "swift-metrics", with: ["Metrics"])],
            exclude: ["Peers"]),
        // What peers send, as functions of bytes: for `make fuzz`, and once for each committed file in `make test`.
        module(
            "FuzzTargets",
            [
                "Daemon", "Clients", "Records", "Configuration", "Bundles", "Decoding", "Isolation", "Session",
                "Caching", "Serialization", "Security", "Transport", "HTTP2", "HTTPWire", "TLS", "EventLoop",
                "Addresses",
            ],
            [logging], at: "Tests/FuzzTargets"),
        tests("Fuzz", of: "FuzzTargets"),
    ]
)

// The fuzzer's runtime is linked only into a build of its own (`make fuzz`).
if Context.environment["PINPROXY_FUZZ"] != nil {
    package.targets.append(
        program("Fuzz", ["FuzzTargets"], at: "Tests/Fuzz", exclude: ["Corpus", "Regressions", "Dictionaries"]))
}

// Some test targets alone, with what they are made of: nothing else is compiled and linked (`make unit`, `make test
// ONLY=…`).
if let wanted = Context.environment["PINPROXY_TESTS"]?.split(separator: " ").map(String.init) {
    let unknown = wanted.filter { name in !package.targets.contains { $0.name == name } }
    precondition(unknown.isEmpty, "PINPROXY_TESTS names no target: \(unknown); names are separated by blanks")
    var needed = Set(wanted)
    var waiting = wanted
    while let name = waiting.popLast() {
        let dependencies = package.targets.first { $0.name == name }?.dependencies ?? []
        for dependency in dependencies {
            let names: [String] =
                switch dependency {
                case .targetItem(let name, _), .byNameItem(let name, _): [name]
                default: []
                }
            waiting += names.filter { needed.insert($0).inserted }
        }
    }
    package.targets.removeAll { !needed.contains($0.name) }
    package.products = []
}
