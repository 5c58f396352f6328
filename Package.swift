// swift-tools-version: 6.2
import PackageDescription

/// Each target is a room: it has one job, and imports only what stands here, which `make test` checks.
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

func room(_ name: String, _ imports: [Target.Dependency], resources: [Resource] = []) -> Target {
    .target(name: name, dependencies: imports, resources: resources, swiftSettings: settings)
}

/// A room in which each step that could break memory is marked `unsafe`.
func safeRoom(_ name: String, _ imports: [Target.Dependency]) -> Target {
    .target(name: name, dependencies: imports, swiftSettings: settings + [.strictMemorySafety()])
}

func tests(_ room: String, _ imports: [Target.Dependency] = []) -> Target {
    .testTarget(
        name: room + "Tests", dependencies: [.target(name: room)] + imports, swiftSettings: settings)
}

func library(_ name: String, pkgConfig: String?, package: String) -> Target {
    .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

let package = Package(
    name: "pinproxy",
    products: [
        .executable(name: "pinproxy", targets: ["pinproxy"]),
        // For programs: docs/library.md.
        .library(name: "PinnedSession", targets: ["PinnedSession"]),
        .library(name: "Security", targets: ["Security"]),
        .library(name: "Serialization", targets: ["Serialization"]),
        .library(name: "Reachability", targets: ["Reachability"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    ],
    targets: [
        library("CLibevent", pkgConfig: "libevent_core", package: "libevent-dev"),
        library("COpenSSL", pkgConfig: "openssl", package: "libssl-dev"),
        library("CCares", pkgConfig: "libcares", package: "libc-ares-dev"),
        library("CSystemd", pkgConfig: "libsystemd", package: "libsystemd-dev"),
        library("CCrypt", pkgConfig: "libcrypt", package: "libcrypt-dev"),
        library("CIDN2", pkgConfig: "libidn2", package: "libidn2-dev"),
        library("CPSL", pkgConfig: "libpsl", package: "libpsl-dev"),
        library("CMNL", pkgConfig: "libmnl", package: "libmnl-dev"),
        library("CSeccomp", pkgConfig: "libseccomp", package: "libseccomp-dev"),
        library("CNGHTTP2", pkgConfig: "libnghttp2", package: "libnghttp2-dev"),
        library("CSQLite", pkgConfig: "sqlite3", package: "libsqlite3-dev"),
        library("CYAML", pkgConfig: "yaml-0.1", package: "libyaml-dev"),
        // Those that decode documents and images are loaded at first use: of these lines only the headers count.
        library("CXML2", pkgConfig: "libxml-2.0", package: "libxml2-dev"),
        library("CZlib", pkgConfig: "zlib", package: "zlib1g-dev"),
        library("CBrotli", pkgConfig: "libbrotlidec", package: "libbrotli-dev"),
        library("CZstd", pkgConfig: "libzstd", package: "libzstd-dev"),
        library("CPNG", pkgConfig: "libpng", package: "libpng-dev"),
        library("CTurboJPEG", pkgConfig: "libturbojpeg", package: "libturbojpeg0-dev"),
        library("CGIF", pkgConfig: "libgif", package: "libgif-dev"),
        library("CWebP", pkgConfig: "libwebpdemux", package: "libwebp-dev"),
        library("CTIFF", pkgConfig: "libtiff-4", package: "libtiff-dev"),
        // Without pkg-config, of whose flags the package manager refuses one (-DAVIF_DLL).
        library("CAVIF", pkgConfig: nil, package: "libavif-dev"),
        .target(name: "CShims", dependencies: ["CLibevent", "COpenSSL", "CCares"]),

        safeRoom("Addresses", []),
        room("EventLoop", ["Addresses", "CLibevent", "CCares", "CMNL", "CShims"]),
        room("TLS", ["Addresses", "COpenSSL", "CShims"]),
        safeRoom("HTTPWire", ["Addresses"]),
        safeRoom("Caching", ["HTTPWire"]),
        room("HTTP2", ["HTTPWire", "CNGHTTP2"]),
        room("Security", ["Addresses", "TLS", "CShims", "CIDN2", "CPSL"]),
        room("DiskStore", ["TLS", "CSQLite"]),
        room("Reachability", ["EventLoop", "CMNL"]),
        room("LocalPeers", ["EventLoop", "CMNL", "CShims"]),
        room(
            "Serialization",
            [
                "CXML2", "CZlib", "CBrotli", "CZstd", "CPNG", "CTurboJPEG", "CGIF", "CWebP", "CTIFF", "CAVIF",
            ]),
        room("Transport", ["EventLoop", "TLS"]),
        room("Isolation", ["Transport", "HTTPWire", "EventLoop", "CMNL", "CShims"]),
        room(
            "Session",
            [
                "Transport", "Security", "Serialization", "HTTPWire", "Caching", "DiskStore", "HTTP2", "Reachability",
                "EventLoop", "TLS", "Addresses",
            ]),
        // What programs see of the session manager.
        safeRoom(
            "PinnedSession",
            ["Session", "Transport", "Security", "Serialization", "HTTPWire", "EventLoop", "TLS"]),
        room("Decoding", ["Session", "Serialization", "EventLoop", "CSeccomp", "CShims"]),
        safeRoom("Bundles", ["Serialization", "Security", "TLS"]),
        room(
            "Configuration",
            ["Bundles", "Security", "Serialization", "Session", "HTTPWire", "EventLoop", "TLS", "Addresses", "CYAML"]),
        room(
            "Records",
            [
                "Configuration", "Session", "Serialization", "Security", "Transport", "HTTPWire", "HTTP2", "TLS",
                "EventLoop",
                .product(name: "Logging", package: "swift-log"),
            ]),
        room(
            "Clients",
            [
                "Records", "Configuration", "Session", "Serialization", "Security", "Transport", "HTTPWire", "HTTP2",
                "TLS", "LocalPeers",
                "EventLoop", "Addresses", "CCrypt", .product(name: "Logging", package: "swift-log"),
            ]),
        room(
            "Daemon",
            [
                "Clients", "Records", "Configuration", "Decoding", "Session", "Serialization", "Security", "Transport",
                "HTTPWire",
                "Caching", "HTTP2", "TLS", "DiskStore", "Bundles",
                "Reachability", "LocalPeers", "EventLoop", .product(name: "Logging", package: "swift-log"),
            ],
            // The status page, within the program.
            resources: ["index.html", "page.css", "page.js", "pins.js", "refusals.js", "incidents.js", "icon.svg"].map {
                .embedInCode("Page/\($0)")
            }),
        .executableTarget(
            name: "pinproxy",
            dependencies: [
                "Daemon", "Clients", "Records", "Isolation", "LocalPeers", "Configuration", "Decoding", "Session",
                "Serialization", "Security", "Bundles",
                "HTTPWire", "EventLoop", "TLS", "CSystemd",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings),

        .executableTarget(
            name: "HostBenchmark", dependencies: ["Configuration", "Security"], path: "Benchmarks/Hosts",
            swiftSettings: settings),

        .executableTarget(
            name: "SerializationBenchmark", dependencies: ["Serialization"], path: "Benchmarks/Serialization",
            swiftSettings: settings),

        // Chains for the tests are minted here, by code that the product does not contain.
        .target(
            name: "TestAuthority", dependencies: ["COpenSSL", "CShims"], path: "Tests/TestAuthority",
            swiftSettings: settings),
        tests("Addresses"),
        tests("EventLoop"),
        tests("TLS", ["COpenSSL", "TestAuthority"]),
        tests("HTTPWire"),
        tests("Caching", ["HTTPWire"]),
        tests("HTTP2", ["HTTPWire", "CNGHTTP2"]),
        tests("Security", ["Addresses", "TLS", "TestAuthority"]),
        // Images, for the tests of who decodes them, and where.
        .target(name: "TestBodies", dependencies: ["Serialization"], path: "Tests/TestBodies", swiftSettings: settings),
        tests("Serialization", ["TestBodies"]),
        // Stores without end, until a test kills it.
        .executableTarget(
            name: "StoringProbe", dependencies: ["DiskStore", "TLS"], path: "Tests/StoringProbe",
            swiftSettings: settings),
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
        // Tries what a confined process may not do.
        .executableTarget(
            name: "ConfinementProbe", dependencies: ["Decoding", "CSeccomp"], path: "Tests/ConfinementProbe",
            swiftSettings: settings),
        .testTarget(
            name: "DecodingTests",
            dependencies: [
                "Decoding", "ConfinementProbe", "pinproxy", "Session", "Serialization", "EventLoop", "TestBodies",
                "CSeccomp",
            ],
            exclude: ["Peers"], swiftSettings: settings),
        tests("Bundles", ["Serialization", "Security", "TLS"]),
        tests(
            "Configuration", ["Bundles", "Security", "Serialization", "Session", "HTTPWire", "TLS", "TestAuthority"]),
        tests(
            "Records",
            [
                "Configuration", "Session", "Security", "HTTPWire", "HTTP2", "TLS", "EventLoop", "TestAuthority",
                .product(name: "Logging", package: "swift-log"),
            ]),
        tests(
            "Clients",
            [
                "Configuration", "Session", "Security", "Transport", "HTTPWire", "TLS", "Reachability", "LocalPeers",
                "EventLoop", .product(name: "Logging", package: "swift-log"),
            ]),
        tests(
            "Daemon",
            [
                "Clients", "Records", "Configuration", "Session", "Security", "HTTPWire", "TLS", "EventLoop",
                .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "CommandTests",
            dependencies: [
                "pinproxy", "Daemon", "Clients", "Records", "Session", "Configuration", "Serialization", "Security",
                "Bundles", "Isolation", "TLS", "TestAuthority",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "IntegrationTests",
            dependencies: [
                "pinproxy", "Daemon", "Clients", "PinnedSession", "Security", "Serialization", "TestAuthority",
                "TestBodies",
            ], exclude: ["Peers"],
            swiftSettings: settings),
        // What peers send, as functions of bytes: for `make fuzz`, and once for each committed file in `make test`.
        .target(
            name: "FuzzTargets",
            dependencies: [
                "Daemon", "Clients", "Records", "Configuration", "Bundles", "Decoding", "Isolation", "Session",
                "Caching",
                "Serialization", "Security", "Transport", "HTTP2", "HTTPWire", "TLS", "EventLoop", "Addresses",
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/FuzzTargets", swiftSettings: settings),
        .testTarget(name: "FuzzTests", dependencies: ["FuzzTargets"], swiftSettings: settings),
    ]
)

// The fuzzer's runtime is linked only into a build of its own (`make fuzz`).
if Context.environment["PINPROXY_FUZZ"] != nil {
    package.targets.append(
        .executableTarget(
            name: "Fuzz", dependencies: ["FuzzTargets"], path: "Tests/Fuzz",
            exclude: ["Corpus", "Regressions", "Dictionaries"],
            swiftSettings: settings))
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
