import PinproxyHTTP2
import PinproxyHTTPWire
import Testing

/// Data of other implementations, recorded on a socket: whole, split in two at every byte, and byte by byte.
@Suite struct RecordedTests {
    /// nghttp (nghttp2 1.52): two requests with a body and trailers, in a tree of priorities of RFC 7540.
    static let nghttp = bytes(
        """
        505249202a20485454502f322e300d0a0d0a534d0d0a0d0a00000c04000000000000030000006400040000ffff0000050200000000030000
        0000c800000502000000000500000000640000050200000000070000000000000005020000000009000000070000000502000000000b0000
        00030000004601240000000d0000000b0f8304022f6186418b089d5c0b8170dc0bcebcf753032a2f2a907a8aaa69d29ac4c0576c4b830f0d
        0231324085f2b24a84ff823d4540854d833505b384f2b22da7be00001701240000000f0000000b0f8304022f6286c2c190c00f0d023132bf
        bebe00000c00000000000d6120736d616c6c20626f647900000801050000000d4084f2b22da7013700000c00000000000f6120736d616c6c
        20626f647900000101050000000fbe0000080700000000000000000000000000
        """)

    /// curl 7.88: a form.
    static let curl = bytes(
        """
        505249202a20485454502f322e300d0a0d0a534d0d0a0d0a0000120400000000000003000000640004020000000002000000000000040800
        0000000001ff000100004c0104000000018304846253d94f86418b089d5c0b8170dc0bcf32e77a8825b650c3abbcf2e153032a2f2a1f1187
        f3007ed4f500bf0f0d01375f981d75d0620d263d4c795bc78f0b4a7b295adb282d443c859300000004010000000000000700010000000161
        3d6226633d64
        """)

    /// Python's h2 4.4: a body with padding and trailers, priorities, a reset, a PING, Huffman coding, GOAWAY.
    static let pythonClient = bytes(
        """
        505249202a20485454502f322e300d0a0d0a534d0d0a0d0a00002a04000000000000010000100000020000000100040000ffff0005000040
        0000080000000000030000006400060001000000003e010400000001838741841ae92a13448962dae838e4ff3cc01f7a87afd2673d4b4e2f
        1f11821c011f11838e017f4082497f864d833505b11f1f0889ba51d85b144149615300000600000000000166697273742000000c00080000
        0001057365636f6e6400000000000000090105000000014084f2b22da78208bf00002201250000000300000001138287c2c1c01f11821c01
        1f11838e017fbf1f0889ba51d85b144149615300000403000000000300000008000008060000000000313233343536373800000408000000
        0000000003e80000bf0105000000058287c2448362334d4084f2b4669bff30f7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf
        7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf
        7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf
        7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfbf7efdfb0000080700000000000000000000000000
        """)

    /// Python's h2 4.4, answering nghttp: 103, 200, a body and trailers, twice.
    static let pythonServer = bytes(
        """
        00002a04000000000000010000100000020000000000040000ffff0005000040000008000000000003000000640006000100000000000401
        0000000000001a01040000000d488208196d94fff8c213ea82ae4423fefed4b0b4415d85a0e39300002901040000000d885f92497ca58ae8
        19aafb50938ec415305a99567b77891c11fda9ac699e063f7687afd2673d4b4e2f00000d00000000000d68656c6c6f2066726f6d20683200
        001901050000000d40889acac8b21234da8f81074088f2b127293aa2da7f821c6400000201040000000fc4c300000401040000000f88c2c1
        c000000d00000000000f68656c6c6f2066726f6d20683200000201050000000fbfbe
        """)

    private static func bytes(_ hex: String) -> [UInt8] {
        let digits = hex.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    private func everySplit(_ bytes: [UInt8], _ make: () throws -> Peer) throws -> [Peer.Seen] {
        let whole = try make()
        whole.receive(bytes)
        for cut in 0...bytes.count {
            let peer = try make()
            peer.receive(Array(bytes[..<cut]))
            peer.receive(Array(bytes[cut...]))
            #expect(peer.received == whole.received, "cut at \(cut)")
        }
        let slow = try make()
        for byte in bytes { slow.receive([byte]) }
        #expect(slow.received == whole.received)
        return whole.ofStreams
    }

    @Test func requestsOfNghttp() throws {
        let fields = "accept: */*\r\naccept-encoding: gzip, deflate\r\nuser-agent: nghttp2/1.52.0\r\n"
        func head(_ stream: Int32, _ path: String) -> Peer.Seen {
            .head(
                stream,
                """
                POST \(path) HTTP/1.1\r\nHost: 127.0.0.1:18788\r\n\(fields)content-length: 12\r\nx-test: \
                one\r\ntrailer: x-sum\r\ntrailer: x-sum\r\n\r\n
                """,
                ends: false, body: .known(12))
        }
        let body = Array("a small body".utf8)
        #expect(
            try everySplit(Self.nghttp) { try Peer(.server) } == [
                head(13, "/a"), head(15, "/b"), .data(13, body), .trailers(13, "x-sum: 7\r\n"), .data(15, body),
                .trailers(15, "x-sum: 7\r\n"),
                .goAway(0, .noError, ""),
            ])
    }

    @Test func aFormOfCurls() throws {
        let seen = try everySplit(Self.curl) { try Peer(.server) }
        #expect(seen.suffix(2) == [.data(1, Array("a=b&c=d".utf8)), .ended(1)])
        guard case .head(1, let text, ends: false, body: .known(7))? = seen.first else {
            Issue.record("\(seen)")
            return
        }
        #expect(
            text.hasSuffix(
                """
                user-agent: curl/7.88.1\r\naccept: */*\r\ncontent-length: 7\r\ncontent-type: \
                application/x-www-form-urlencoded\r\ncookie: x=1; y=2\r\n\r\n
                """
            ))
    }

    @Test func requestsOfPythonsH2() throws {
        let fields =
            """
            Host: a.test\r\nuser-agent: python-h2\r\nte: trailers\r\nauthorization: Bearer secret\r\ncookie: a=1; \
            b=2\r\n\r\n
            """
        #expect(
            try everySplit(Self.pythonClient) { try Peer(.server) } == [
                .head(1, "POST /upload?x=1 HTTP/1.1\r\n\(fields)", ends: false, body: .unknown),
                .data(1, Array("first second".utf8)),
                .trailers(1, "x-sum: 12\r\n"),
                .head(3, "GET /upload?x=1 HTTP/1.1\r\n\(fields)", ends: true, body: .none), .reset(3, .cancel),
                .head(
                    5, "GET /big HTTP/1.1\r\nHost: a.test\r\nx-big: \(String(repeating: "z", count: 200))\r\n\r\n",
                    ends: true, body: .none),
                .goAway(0, .noError, ""),
            ])
    }

    @Test func responsesOfPythonsH2() throws {
        let seen = try everySplit(Self.pythonServer) {
            // As in nghttp: its first six numbers were used for priorities.
            let client = try Peer(.client)
            for _ in 0..<8 { _ = client.session.submitRequest(request(), hasBody: false) }
            _ = client.collect()
            return client
        }
        let fields = "content-type: text/plain; charset=utf-8\r\nset-cookie: a=b; Path=/\r\nserver: python-h2\r\n\r\n"
        #expect(
            seen
                == [13, 15].flatMap { stream -> [Peer.Seen] in
                    [
                        .head(
                            stream, "HTTP/1.1 103 \r\nlink: </style.css>; rel=preload\r\n\r\n", ends: false, body: .none
                        ),
                        .head(stream, "HTTP/1.1 200 \r\n\(fields)", ends: false, body: .unknown),
                        .data(stream, Array("hello from h2".utf8)),
                        .trailers(stream, "grpc-status: 0\r\nx-checksum: abc\r\n"),
                    ]
                })
    }
}
