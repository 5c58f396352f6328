// Fuzz TARGET [options of libFuzzer] [folders]; Fuzz --list. `make fuzz` calls it; docs/testing.md says more.

import FuzzTargets
import Glibc

/// Of the fuzzer's runtime, which `-sanitize=fuzzer` links.
@_silgen_name("LLVMFuzzerRunDriver")
func runFuzzer(
    _ count: UnsafeMutablePointer<CInt>, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ body: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

func fail(_ words: String) -> Never {
    let line = Array((words + "\n").utf8)
    _ = write(2, line, line.count)
    exit(64)
}

/// What the callback, which can't capture, calls.
nonisolated(unsafe) var chosen: FuzzTarget?

switch CommandLine.arguments.dropFirst().first {
case "--list":
    for target in FuzzTarget.all { print(target.name) }
case let name?:
    guard let target = FuzzTarget.named(name) else {
        fail("There is no target \"\(name)\": --list names them.")
    }
    chosen = target
    // The rest is the fuzzer's, with the program's name before it.
    var count = CommandLine.argc - 1
    var arguments = CommandLine.unsafeArgv + 1
    arguments[0] = CommandLine.unsafeArgv[0]
    exit(
        runFuzzer(&count, &arguments) { bytes, count in
            chosen?.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
            return 0
        })
case nil:
    fail("usage: Fuzz TARGET [options of libFuzzer] [folders]; Fuzz --list")
}
