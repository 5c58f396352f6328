internal import Glibc

/// A program of another package, run to its end.
struct OtherProgram {
    /// A path, or a name that PATH has.
    let name: String
    /// To be installed if it isn't there.
    let package: String

    /// - Parameter input: what it reads; less than a pipe takes.
    /// - Returns: what it printed.
    @discardableResult
    func run(_ arguments: [String], input: [UInt8] = []) throws -> String {
        guard let path else { throw CommandFailure("there is no \(name): install \(package)") }
        let command = [path] + arguments
        let output: String
        let isSuccess: Bool
        do {
            let run = try ChildProcess.run(command, input: input)
            (isSuccess, output) = (run.isSuccess, String(decoding: run.output, as: UTF8.self))
        } catch {
            throw CommandFailure("\(path) can't be run: \(error)")
        }
        guard isSuccess else { throw CommandFailure("\(command.joined(separator: " ")) failed:\n\(output)") }
        return output
    }

    private var path: String? {
        if name.contains("/") { return access(name, X_OK) == 0 ? name : nil }
        let folders = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        return folders.split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
    }
}
