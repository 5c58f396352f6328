internal import FoundationEssentials

/// The environment that this process was started with. ProcessInfo reads all of it with each call.
enum StartEnvironment {
    static let variables = ProcessInfo.processInfo.environment
}
