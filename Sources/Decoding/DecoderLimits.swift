import PinproxyEventLoop

package struct DecoderLimits: Sendable {
    /// Processes at a time. A host may have all but one of them, and leaves one for the others.
    package var processes = min(max(Processors.available + 1, 2), 8)
    /// Time for one body. The largest images that are decoded at all take about a second of a processor.
    package var deadline = Duration.seconds(10)
    package var patience = Duration.seconds(30)
    package var idle = Duration.seconds(60)
    /// Bodies after which a process is replaced: one that was taken over sees no more than these.
    package var bodies = 1000
    /// Time of work after which a process is replaced, so that it never comes near to ``processorSeconds``.
    package var work = Duration.seconds(60)
    /// RLIMIT_CPU: of a process that works on without being asked.
    package var processorSeconds = 90
    /// The bodies that wait and that are worked on.
    package var queuedBytes = 256 << 20

    package init() {}

    /// Memory beyond the start's (RLIMIT_AS), by the longest body: an image of 512 MiB, and bodies as trees.
    static func memory(longestBody: Int) -> Int { 768 << 20 + 16 * min(longestBody, 1 << 34) }
}
