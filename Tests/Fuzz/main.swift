// Fuzz TARGET [options of libFuzzer] [folders]; Fuzz --list. `make fuzz` calls it; docs/testing.md says more.

import Glibc
import PinproxyFuzzTargets

/// The entry point of the fuzzer's runtime, which `-sanitize=fuzzer` links.
@_silgen_name("LLVMFuzzerRunDriver")
func runFuzzer(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ body: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

func fail(_ words: String) -> Never {
    let line = Array((words + "\n").utf8)
    _ = write(2, line, line.count)
    exit(64)
}

/// The target for the callback, which can't capture.
nonisolated(unsafe) var chosen: FuzzTarget?

/// Passes the target's name to the processes that libFuzzer starts for a merge, which only get its own options.
let inherited = "PINPROXY_FUZZ_TARGET"

func fuzz(_ name: String, optionsAfter skipped: Int) -> Never {
    guard let target = FuzzTarget.named(name) else { fail("There is no target \"\(name)\": --list names them.") }
    chosen = target
    setenv(inherited, name, 1)
    var count = CommandLine.argc - CInt(skipped)
    var arguments = CommandLine.unsafeArgv + skipped
    arguments[0] = CommandLine.unsafeArgv[0]
    exit(
        runFuzzer(&count, &arguments) { bytes, count in
            chosen?.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
            return 0
        })
}

switch CommandLine.arguments.dropFirst().first {
case "--list":
    for target in FuzzTarget.all { print(target.name) }
case let name? where !name.hasPrefix("-"): fuzz(name, optionsAfter: 1)
case _? where getenv(inherited) != nil: fuzz(String(cString: getenv(inherited)), optionsAfter: 0)
default: fail("usage: Fuzz TARGET [options of libFuzzer] [folders]; Fuzz --list")
}
