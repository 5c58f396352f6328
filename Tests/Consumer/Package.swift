// swift-tools-version: 6.2
import PackageDescription

// Another project's server, which depends on pinproxy and on the usual packages of servers: names of modules
// have to be one package's alone. ConsumerTests copy it, and `make test-library` builds and runs it.

let package = Package(
    name: "consumer",
    dependencies: [
        // A path ends with the directory of a clone, which may have any name.
        .package(
            name: "pinproxy", path: Context.environment["CONSUMER_PINPROXY"] ?? "../..",
            traits: ["Logging", "Metrics", "ServiceLifecycle"]),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .executableTarget(
            name: "Consumer",
            dependencies: [
                .product(name: "PinnedSession", package: "pinproxy"),
                .product(name: "PinnedSessionLogging", package: "pinproxy"),
                .product(name: "PinnedSessionMetrics", package: "pinproxy"),
                .product(name: "PinnedSessionService", package: "pinproxy"),
                .product(name: "PinproxyReachability", package: "pinproxy"),
                .product(name: "PinproxySecurity", package: "pinproxy"),
                .product(name: "PinproxySerialization", package: "pinproxy"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            swiftSettings: [.treatAllWarnings(as: .error)])
    ])
