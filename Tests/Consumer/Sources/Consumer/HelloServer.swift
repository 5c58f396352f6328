import NIOCore
import NIOHTTP1
import NIOPosix

/// Answers each request on the loopback with an XML document.
struct HelloServer {
    let port: Int
    private let channel: any Channel

    init(on group: any EventLoopGroup) async throws {
        channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 512)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(Handler())
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = channel.localAddress?.port ?? 0
    }

    func close() async throws { try await channel.close() }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard case .end = unwrapInboundIn(data) else { return }
            let body = "<hello/>"
            let fields: HTTPHeaders = ["Content-Type": "application/xml", "Content-Length": "\(body.utf8.count)"]
            let head = HTTPResponseHead(version: .http1_1, status: .ok, headers: fields)
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: body)))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}
