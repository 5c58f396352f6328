import Foundation
import Testing

@testable import PinproxyRecords

/// Lines queued for the log's writer, and what happens when the writer is slow.
@Suite struct LogQueueTests {
    /// A queue that a test can use inside an expectation.
    private final class Bench {
        private var queue: LogQueue

        init(capacity: Int = 100) { queue = LogQueue(capacity: capacity) }

        func add(_ text: String) -> Bool { queue.add(Array(text.utf8)[...], count: text.count { $0 == "\n" }) }
        func close() -> Bool { queue.close() }

        func take() -> (text: String, dropped: Int) {
            var buffer: [UInt8] = []
            let dropped = queue.take(into: &buffer)
            return (String(decoding: buffer, as: UTF8.self), dropped)
        }
    }

    @Test func keepsTheOrder() {
        let queue = Bench(capacity: 100)
        for line in ["a\n", "b\n", "c\n"] { _ = queue.add(line) }
        #expect(queue.take() == ("a\nb\nc\n", 0))
        #expect(queue.take() == ("", 0))
    }

    @Test func wakesTheWriterOnlyIfItSleeps() {
        let queue = Bench(capacity: 100)
        // The writer hasn't come yet: it will look without being woken.
        #expect(!queue.add("a\n"))
        #expect(queue.take().text == "a\n")
        // The writer is busy.
        #expect(!queue.add("b\n"))
        #expect(queue.take().text == "b\n")
        #expect(queue.take().text == "")
        // The writer sleeps.
        #expect(queue.add("c\n"))
        #expect(!queue.add("d\n"))
        #expect(queue.take().text == "c\nd\n")
        #expect(queue.take().text == "")
        #expect(queue.close())
        #expect(!queue.add("e\n"))
        #expect(queue.take().text == "")
    }

    @Test func dropsWhatIsTooMuchAndAllThatFollows() {
        let queue = Bench(capacity: 8)
        _ = queue.add("1234567\n")
        _ = queue.add("a\nb\nc\n")
        #expect(queue.take() == ("1234567\n", 3))
        // There is space again: the number of dropped lines is reported once.
        _ = queue.add("12345\n")
        _ = queue.add("1234\n")
        // This would fit, but would separate the gap into two.
        _ = queue.add("x\n")
        #expect(queue.take() == ("12345\n", 2))
        #expect(queue.take() == ("", 0))
    }
}

/// The writer's thread, with a pipe that is read or not.
@Suite(.timeLimit(.minutes(5))) struct LogOutputTests {
    private static let linesOfAll = 2000

    private func line(_ number: Int, of thread: Int) -> [UInt8] { Array("\(thread) \(number)\n".utf8) }

    private func allRead(from pipe: Pipe) throws -> [String] {
        try pipe.fileHandleForWriting.close()
        let text = String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        return text.split(separator: "\n").map(String.init)
    }

    @Test func theLinesOfEachThreadKeepTheirOrder() throws {
        let pipe = Pipe()
        let output = try LogOutput(descriptor: pipe.fileHandleForWriting.fileDescriptor, format: .text)
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for number in 1...(Self.linesOfAll / 4) { output.write(line(number, of: thread)[...], count: 1) }
        }
        output.finish()
        let lines = try allRead(from: pipe)
        #expect(lines.count == Self.linesOfAll)
        for thread in 0..<4 {
            #expect(
                lines.filter { $0.hasPrefix("\(thread) ") } == (1...(Self.linesOfAll / 4)).map { "\(thread) \($0)" })
        }
    }

    /// Without a reader no writer blocks, and neither does the end. Every line is accounted for when reading resumes.
    @Test func aStalledReaderIsToldWhatItMissed() throws {
        let pipe = Pipe()
        _ = fcntl(pipe.fileHandleForWriting.fileDescriptor, 1031, 4096)
        let output = try LogOutput(descriptor: pipe.fileHandleForWriting.fileDescriptor, format: .json, capacity: 8192)
        for number in 1...Self.linesOfAll * 5 { output.write(line(number, of: 1)[...], count: 1) }
        output.finish(within: 0)
        // Reading resumes.
        let reader = Thread.detached { try pipe.fileHandleForReading.readToEnd() ?? Data() }
        output.finish(within: 30)
        try pipe.fileHandleForWriting.close()
        let lines = String(decoding: try reader(), as: UTF8.self).split(separator: "\n")
        // Every gap has a line that reports it, with the right count.
        var number = 0
        for line in lines {
            if line.contains("\"log.dropped\"") {
                let missing = line.split(separator: "\"lines\":").last?.prefix { $0.isNumber }
                number += try #require(missing.flatMap { Int($0) })
            } else {
                number += 1
                #expect(line == "1 \(number)")
            }
        }
        #expect(number == Self.linesOfAll * 5)
        #expect(lines.contains { $0.contains("log.dropped") })
    }

    /// Writing fails in the middle of a line, as on a full disk, and works again later: no line is appended to half of
    /// another.
    @Test func aLineAfterHalfALineStandsAlone() throws {
        var ends: [CInt] = [0, 0]
        try #require(pipe(&ends) == 0)
        let writing = ends[1]
        _ = fcntl(writing, 1031, 4096)
        // The record follows the line: once it is taken, writing has failed.
        let hasFailed = DispatchSemaphore(value: 0)
        let output = try LogOutput(descriptor: writing, format: .json) { _, _ in hasFailed.signal() >= 0 }
        output.write(([UInt8](repeating: UInt8(ascii: "x"), count: 6000) + [UInt8(ascii: "\n")])[...], count: 1)
        output.write([JournalRecord.start, JournalRecord.end][...], count: 1)
        var waiting: CInt = 0
        while waiting < 4096 { try #require(ioctl(ends[0], UInt(FIONREAD), &waiting) == 0) }
        close(ends[0])
        hasFailed.wait()

        let again = FileHandle(fileDescriptor: open("/proc/self/fd/\(writing)", O_RDONLY), closeOnDealloc: true)
        let reader = Thread.detached { try again.readToEnd() ?? Data() }
        output.write(line(1, of: 1)[...], count: 1)
        output.finish(within: 30)
        close(writing)
        let lines = String(decoding: try reader(), as: UTF8.self).split(separator: "\n")
        #expect(lines.first?.count == 4096, "\(lines)")
        #expect(lines.contains("1 1") && lines.count == 3, "\(lines)")
        #expect(lines.contains { $0.contains("log.dropped") && $0.contains("\"lines\":1") }, "\(lines)")
    }

    /// A process that shares standard error may have made it non-blocking.
    @Test func aDescriptorThatDoesNotBlockLosesNothing() throws {
        let pipe = Pipe()
        let descriptor = pipe.fileHandleForWriting.fileDescriptor
        _ = fcntl(descriptor, 1031, 4096)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        let output = try LogOutput(descriptor: descriptor, format: .text)
        for number in 1...Self.linesOfAll { output.write(line(number, of: 1)[...], count: 1) }
        let reader = Thread.detached { try pipe.fileHandleForReading.readToEnd() ?? Data() }
        output.finish(within: 30)
        try pipe.fileHandleForWriting.close()
        #expect(String(decoding: try reader(), as: UTF8.self).split(separator: "\n").count == Self.linesOfAll)
    }
}

extension Thread {
    /// Runs `work` on a new thread; calling the result waits for it.
    fileprivate static func detached<Value: Sendable>(
        _ work: @escaping @Sendable () throws -> Value
    ) -> () throws -> Value {
        nonisolated(unsafe) var result: Result<Value, any Error>?
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            result = Result { try work() }
            done.signal()
        }
        return {
            done.wait()
            return try result!.get()
        }
    }
}
