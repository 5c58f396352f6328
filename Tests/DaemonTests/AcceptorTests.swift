import Dispatch
import Foundation
import Testing

@testable import PinproxyDaemon

/// The acceptor with real workers.
@Suite(.timeLimit(.minutes(5))) struct AcceptorTests {
    /// A client that sends a request to the proxy itself and gets usage instructions (400).
    private final class Client {
        private let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)

        init(port: UInt16) throws {
            var bound = timeval(tv_sec: 20, tv_usec: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &bound, socklen_t(MemoryLayout<timeval>.size))
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            let descriptor = descriptor
            let status = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            try #require(status == 0)
            let question = Array("GET / HTTP/1.1\r\nHost: proxy.test\r\n\r\n".utf8)
            try #require(send(descriptor, question, question.count, Int32(MSG_NOSIGNAL)) == question.count)
        }

        deinit { close(descriptor) }

        func isAnswered() -> Bool {
            var bytes = [UInt8](repeating: 0, count: 12)
            return recv(descriptor, &bytes, bytes.count, Int32(MSG_WAITALL)) == bytes.count
                && bytes.elementsEqual("HTTP/1.1 400".utf8)
        }
    }

    @Test(arguments: 0...1) func aWorkerThatStallsKeepsNobodyElseWaiting(number: Int) throws {
        let bench = try WorkerBench()
        let proceed = bench.hold(worker: number)
        // Each worker gets one before its stall can be known.
        let first = try (1...2).map { _ in try Client(port: bench.port) }
        #expect(first[1 - number].isAnswered())
        for _ in 1...10 { #expect(try Client(port: bench.port).isAnswered()) }
        proceed.signal()
        #expect(first[number].isAnswered())
    }
}
