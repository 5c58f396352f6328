import Foundation
import PinnedSession
import PinproxySerialization
import PinproxyTestBodies
import Testing

/// The image downloader: coalescing, receipts, turns, and the cache in memory.
@Suite(.timeLimit(.minutes(5)))
struct LibraryImageTests {
    /// An image's response, as an answer path wants it.
    /// - Parameter endsByClosing: without a length.
    private func answer(
        _ image: [UInt8]? = nil, type: String = "image/png", endsByClosing: Bool = false
    ) throws -> String {
        let image = image ?? ImageFiles.seed("png")
        try #require(!image.isEmpty)
        let length = endsByClosing ? "" : "Content-Length: \(image.count)\r\n"
        let head = "HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\n\(length)\r\n"
        return RuleBed.encoded(Array(head.utf8) + image)
    }

    @Test func anImageIsDownloadedOnce() async throws {
        try await withLibraryBed { bed in
            let images = ImageDownloader(session: try bed.session())
            let request = try HTTPRequest(bed.url + "/answer/one/" + answer())
            let image = try await images.image(for: request)
            #expect(image.bytes == ImageFiles.seed("png"))
            #expect(try await images.image(for: request) == image && images.cache?.image(for: request) == image)
            #expect(try await bed.targets().count == 1)
            images.cache?.removeAll()
            _ = try await images.image(for: request)
            #expect(try await bed.targets().count == 2)
        }
    }

    @Test func identicalRequestsAreMadeOnce() async throws {
        try await withLibraryBed { bed in
            let images = ImageDownloader(session: try bed.session(), cache: nil)
            let request = try HTTPRequest(bed.url + "/held-answer/shared/close/" + answer(endsByClosing: true))
            var others = request
            try others.set("Authorization", "Bearer x", isSecret: true)
            let receipts = (0..<3).map { _ in images.download(request) }
            let other = images.download(others)
            try await eventually("two requests") { bed.origin.events.all("held").count == 2 }
            // One that goes leaves the others.
            receipts[0].cancel()
            #expect(await failure { _ = try await receipts[0].image() }?.code == -999)
            _ = try await bed.session().data(for: HTTPRequest(bed.url + "/release/shared"))
            for receipt in receipts.dropFirst() + [other] { #expect(try await !receipt.image().bytes.isEmpty) }
            #expect(bed.origin.events.all("held").count == 2)
        }
    }

    @Test func theLastReceiptTakesItsDownloadAlong() async throws {
        try await withLibraryBed { bed in
            let ended = Collected<Int?>()
            var hooks = SessionHooks()
            hooks.completed = { _, _, error in ended.add(error?.code) }
            let images = ImageDownloader(session: try bed.session(hooks: hooks), maximumActive: 1)
            let request = try HTTPRequest(bed.url + "/held-gone/image")
            let receipts = (0..<2).map { _ in images.download(request) }
            let waiting = images.download(try HTTPRequest(bed.url + "/never"))
            _ = try await bed.origin.events.first("held") { $0["name"] == "image" }
            waiting.cancel()
            receipts[0].cancel()
            receipts[0].cancel()
            #expect(ended.all.isEmpty)
            receipts[1].cancel()
            try await eventually("the download to end") { ended.all == [-999] }
            // Its place is free again.
            #expect(try await !images.image(for: HTTPRequest(bed.url + "/answer/x/" + answer())).bytes.isEmpty)
            let task = Task { try await images.image(for: request) }
            try await eventually("the second to be held") { bed.origin.events.all("held").count == 2 }
            task.cancel()
            #expect(await failure { _ = try await task.value }?.code == -999)
            #expect(try await !bed.targets().contains("/never"))
        }
    }

    @Test(arguments: [ImageDownloader.Order.fifo, .lifo])
    func fourAreDownloadedAtOneTime(_ order: ImageDownloader.Order) async throws {
        try await withLibraryBed { bed in
            let images = ImageDownloader(session: try bed.session(), order: order)
            let answer = try answer(endsByClosing: true)
            let first = try (0..<4).map { number in
                images.download(try HTTPRequest(bed.url + "/held-answer/\(number)/close/" + answer))
            }
            try await eventually("four to be held") { bed.origin.events.all("held").count == 4 }
            let later = try ["a", "b"].map { name in
                images.download(try HTTPRequest(bed.url + "/held-answer/\(name)/close/" + answer))
            }
            let other = try bed.session()
            _ = try await other.data(for: HTTPRequest(bed.url + "/release/0"))
            try await eventually("one more") { bed.origin.events.all("held").count == 5 }
            #expect(bed.origin.events.all("held").last?["name"] == (order == .fifo ? "a" : "b"))
            for name in ["1", "2", "3", "a", "b"] {
                _ = try await other.data(for: HTTPRequest(bed.url + "/release/\(name)"))
            }
            for receipt in first + later { #expect(try await !receipt.image().bytes.isEmpty) }
        }
    }

    @Test func whatIsNotAnImageIsAnError() async throws {
        try await withLibraryBed { bed in
            let images = ImageDownloader(session: try bed.session())
            func code(_ request: HTTPRequest) async -> Int? {
                await failure { _ = try await images.image(for: request) }?.code
            }
            #expect(await code(try HTTPRequest(bed.url + "/answer/x/" + answer(type: "text/html"))) == -1016)
            #expect(await code(try HTTPRequest(bed.url + "/answer/x/" + answer(Array("text".utf8)))) == -1016)
            #expect(await code(try HTTPRequest(bed.url + "/answer/x/" + answer([1]))) == -1016)
            let empty = encoded("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 0\r\n\r\n")
            #expect(await code(try HTTPRequest(bed.url + "/answer/x/" + empty)) == -1016)
            let missing = encoded("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
            #expect(await code(try HTTPRequest(bed.url + "/answer/x/" + missing)) == -1011)
            #expect(await code(try HTTPRequest(bed.url + "/never", method: "POST")) == -1000)
            #expect(images.cache?.size == 0)
        }
    }
}
