import Testing

@testable import PinproxySerialization

/// The original's table: what each serializer accepts and refuses.
@Suite struct ResponseSerializerTests {
    private func head(_ status: Int, _ type: String?) -> ResponseHead {
        ResponseHead(status: status, contentType: type.map { ContentType($0) }, body: .unknownLength)
    }

    private func error(
        _ serializer: any ResponseSerializer, _ status: Int, _ type: String?, isEmpty: Bool = false
    ) -> ResponseSerializationError? {
        do throws(ResponseSerializationError) {
            try serializer.validate(head(status, type), bodyIsEmpty: isEmpty)
            return nil
        } catch {
            return error
        }
    }

    private static let typed: [(any ResponseSerializer, [String])] = [
        (JSONResponseSerializer(), ["application/json", "text/json", "text/javascript"]),
        (XMLResponseSerializer(), ["application/xml", "text/xml"]),
        (PropertyListResponseSerializer(), ["application/x-plist"]),
        (
            ImageResponseSerializer(),
            [
                "image/tiff", "image/jpeg", "image/gif", "image/png", "image/ico", "image/x-icon", "image/bmp",
                "image/x-bmp",
                "image/x-xbitmap", "image/x-win-bitmap", "image/webp", "image/avif",
            ]
        ),
    ]

    @Test func acceptsTheTypesOfTheTable() {
        let all =
            Self.typed.flatMap(\.1) + [
                "text/html", "application/octet-stream", "nonstandard/json", "application/vnd.a+json",
            ]
        for (serializer, types) in Self.typed {
            for type in all {
                let error = error(serializer, 200, type)
                #expect((error == nil) == types.contains(type), "\(serializer.format) \(type)")
                if let error { #expect(error.code.rawValue == -1016 && error.received == type) }
                #expect(self.error(serializer, 200, type, isEmpty: true) == nil)
            }
            #expect(error(serializer, 200, nil)?.code == .cannotDecodeContentData)
            #expect(error(serializer, 200, nil, isEmpty: true) == nil)
        }
        for type in all { #expect(error(HTTPResponseSerializer(), 200, type) == nil) }
        #expect(error(HTTPResponseSerializer(), 200, nil) == nil)
    }

    @Test func acceptsSuccess() {
        for serializer in Self.typed.map(\.0) + [HTTPResponseSerializer()] {
            let type = serializer.acceptableContentTypes?.first?.description
            for status in 100...599 {
                let error = error(serializer, status, type)
                #expect((error == nil) == (200...299).contains(status))
                if let error { #expect(error.code.rawValue == -1011 && error.underlying == []) }
            }
            #expect(
                error(serializer, 500, "text/html")?.underlying.map(\.code.rawValue)
                    == (serializer.acceptableContentTypes == nil ? [] : [-1016]))
            #expect(error(serializer, 500, "text/html", isEmpty: true)?.underlying == [])
        }
    }

    @Test func givesNoValueForNoBody() throws {
        #expect(try JSONResponseSerializer().value(of: [], head: head(200, "application/json")) == nil)
        #expect(try JSONResponseSerializer().value(of: [0x20], head: head(200, "application/json")) == nil)
        #expect(try XMLResponseSerializer().value(of: [], head: head(200, nil)) == nil)
        #expect(try PropertyListResponseSerializer().value(of: [], head: head(204, nil)) == nil)
        #expect(try ImageResponseSerializer().value(of: [], head: head(204, "image/png")) == nil)
        #expect(try HTTPResponseSerializer().value(of: [], head: head(204, nil)) == [])
    }

    @Test func compoundTakesTheFirstThatAccepts() throws {
        let compound = CompoundResponseSerializer([JSONResponseSerializer(), XMLResponseSerializer()])
        #expect(try compound.value(of: Array("[1]".utf8), head: head(200, "text/json")) as? ParameterValue == [1])
        #expect(
            try compound.value(of: Array("<a/>".utf8), head: head(200, "text/xml")) as? [UInt8] == Array("<a/>".utf8))
        let body = #expect(throws: ResponseSerializationError.self) {
            try compound.value(of: Array("[1".utf8), head: head(200, "text/json"))
        }
        #expect(body?.expected == "JSON")
        #expect(body?.underlying.count == 2)
        let status = #expect(throws: ResponseSerializationError.self) {
            try compound.value(of: [0x31], head: head(500, "text/json"))
        }
        #expect(status?.code.rawValue == -1011)
    }

    @Test func countsPlacesInCharacters() {
        func place(_ offset: Int, _ text: String) -> TextPlace {
            let bytes = Array(text.utf8)
            return TextPlace(ofByte: offset, in: bytes.span)
        }
        #expect(place(0, "") == TextPlace(line: 1, column: 1))
        #expect(place(3, "é😀x") == TextPlace(line: 1, column: 2 + 1))
        #expect(place(2, "é😀x") == TextPlace(line: 1, column: 2))
        #expect(place(4, "a\r\n\nb") == TextPlace(line: 3, column: 1))
        #expect(place(99, "a\nb") == TextPlace(line: 2, column: 2))
    }
}
