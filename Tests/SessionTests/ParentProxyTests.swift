import EventLoop
import Security
import Session
import TLS
import TestAuthority
import Testing

@Suite struct ParentProxyTests {
    /// Connects through a parent that answers CONNECT with `answer` and then is the origin.
    private func outcome(_ answer: String, heard: Mailbox<String> = Mailbox()) throws -> Workbench.Outcome {
        let authority = try OriginAuthority.shared.get()
        let context = try OriginAuthority.context()
        let peer = try Peer { descriptor in
            heard.put(readHead(descriptor))
            say(answer, to: descriptor)
            if answer.hasPrefix("HTTP/1.1 2") || answer.hasPrefix("HTTP/1.1 1") {
                authority.serve(descriptor, with: context)
            }
        }
        let bench = try Workbench()
        let parent = ParentProxy(host: "127.0.0.1", port: peer.port, authorization: "Basic dTpw")
        return try withExtendedLifetime(peer) {
            try bench.connect(to: bench.target(port: 8443, host: "2001:db8::1", parent: parent)).map {
                $0.close()
                return $0
            }
        }
    }

    @Test(arguments: ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 204 Fine\r\nX: y\r\n\r\n", "HTTP/1.1 103 Wait\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"])
    func `a tunnel is asked for, and TLS runs inside`(answer: String) throws {
        let heard = Mailbox<String>()
        let connection = try outcome(answer, heard: heard).get()
        #expect(connection.verdict?.isAccepted == true)
        #expect(
            heard.take()
                == "CONNECT [2001:db8::1]:8443 HTTP/1.1\r\nHost: [2001:db8::1]:8443\r\nProxy-Authorization: Basic dTpw\r\n\r\n")
    }

    @Test(arguments: [407, 403, 502, 301]) func `a refusal tells the status`(status: Int) throws {
        let result = try outcome("HTTP/1.1 \(status) No\r\nContent-Length: 0\r\n\r\n")
        guard case .failure(.parentRefused(status)) = result else { throw Unexpected(text: "\(result)") }
    }

    @Test(arguments: [
        "", "HTTP/1", "garbage\r\n\r\n", "SSH-2.0-OpenSSH\r\n", "HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nearly", "HTTP/1.1 200 OK\r\nToo-Long: ...\r\n\r\n",
    ])
    func `an answer that isn't one, or has bytes behind it, is a failure`(answer: String) throws {
        let result = try outcome(answer.replacing("...", with: String(repeating: "x", count: 20_000)))
        guard case .failure(.parentFailed) = result else { throw Unexpected(text: "\(result)") }
    }

    @Test func `a parent that isn't there is unreachable`() throws {
        let port = try Peer { _ in }.port
        let bench = try Workbench()
        let failure = try bench.failure(to: bench.target(port: 443, parent: ParentProxy(host: "127.0.0.2", port: port)))
        guard case .unreachable = failure else { throw Unexpected(text: "\(failure)") }
    }
}
