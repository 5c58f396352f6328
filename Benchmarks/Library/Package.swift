// swift-tools-version: 6.2
import PackageDescription

// A separate package, so that pinproxy doesn't depend on what it is compared with.

func load(_ name: String, _ products: [Target.Dependency] = []) -> Target {
    .executableTarget(name: name, dependencies: ["Load"] + products)
}

let package = Package(
    name: "library-benchmark",
    dependencies: [
        .package(name: "pinproxy", path: "../..", traits: []),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    ],
    targets: [
        .target(name: "Load"),
        load("PinnedSessionLoad", [.product(name: "PinnedSession", package: "pinproxy")]),
        load("AsyncHTTPClientLoad", [.product(name: "AsyncHTTPClient", package: "async-http-client")]),
        load("URLSessionLoad"),
    ])
