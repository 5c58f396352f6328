internal import CPinproxyXML2

/// The state of reading a document. Its pointers are valid during that call of ``XMLDocument/read(_:_:)``.
final class XMLReading {
    let library: shim_xml
    let events: (any XMLEvents)?
    private(set) var defect: BodyDefect?
    /// While the document is read.
    var context: xmlParserCtxtPtr?
    private let body: UnsafeRawBufferPointer
    private var at = 0
    /// Bytes that libxml2 got inside the document type declaration.
    private var subset = 0
    /// Bytes of replacement text that references may still produce. Parameter entities get round libxml2's own bound.
    private var allowance: Int
    private var parameterAllowance = XMLDocument.longestParameters

    init(_ body: UnsafeRawBufferPointer, _ events: (any XMLEvents)?, _ library: shim_xml) {
        self.body = body
        self.events = events
        self.library = library
        allowance = max(1 << 20, 10 * body.count)
    }

    // MARK: The document

    /// The next piece; empty after a defect, which makes libxml2 stop.
    ///
    /// Stopping it inside a token or a read would make it use freed memory.
    func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        guard let context, defect == nil, isWithinBounds(context) else { return 0 }
        let count = min(room.count, body.count - at)
        guard count > 0 else { return 0 }
        room.copyMemory(from: UnsafeRawBufferPointer(rebasing: body[at..<at + count]))
        at += count
        if context.pointee.inSubset != 0 { subset += count }
        return count
    }

    /// libxml2's room for an element's attributes shows their number: two pointers for each.
    private func isWithinBounds(_ context: xmlParserCtxtPtr) -> Bool {
        if context.pointee.maxatts / 2 > XMLDocument.mostAttributes + 8 {
            keep("an element has more than \(XMLDocument.mostAttributes) attributes", at: context)
        } else if subset > XMLDocument.longestSubset {
            keep("its document type declaration is longer than \(XMLDocument.longestSubset) bytes", at: context)
        } else {
            return true
        }
        return false
    }

    // MARK: What is wrong

    func keep(_ error: xmlError) {
        let message = error.message.map { String(cString: $0) } ?? "error \(error.code)"
        keep(ShownBytes.line(message), line: error.line, column: error.int2)
    }

    private func keep(_ explanation: String, at context: xmlParserCtxtPtr) {
        let input = context.pointee.input
        keep(explanation, line: input?.pointee.line ?? 0, column: input?.pointee.col ?? 0)
    }

    private func keep(_ explanation: String, line: Int32, column: Int32) {
        guard defect == nil else { return }
        let place = line > 0 ? TextPlace(line: Int(line), column: column > 0 ? Int(column) : nil) : nil
        defect = BodyDefect(explanation, at: place)
    }

    // MARK: Entities

    /// The entity of a document (or of an entity in it), or nil once the expansion limit is reached.
    func allow(_ entity: xmlEntityPtr?, isParameter: Bool, in context: xmlParserCtxtPtr) -> xmlEntityPtr? {
        guard let entity else { return nil }
        guard events?.allowsEntities != false else {
            stop("it refers to an entity", context)
            return nil
        }
        let length = Int(max(entity.pointee.length, 0)) + 32
        allowance -= length
        if isParameter { parameterAllowance -= length }
        guard allowance < 0 || parameterAllowance < 0 else { return entity }
        stop("its entities expand too much, as in a bomb", context)
        return nil
    }

    private func stop(_ explanation: String, _ context: xmlParserCtxtPtr) {
        keep(explanation, at: context)
        library.stopParser(context)
    }

    // MARK: From C

    static func context(_ pointer: UnsafeMutableRawPointer?) -> xmlParserCtxtPtr? {
        pointer?.assumingMemoryBound(to: xmlParserCtxt.self)
    }

    static func of(_ context: xmlParserCtxtPtr) -> XMLReading? {
        context.pointee._private.map { Unmanaged<XMLReading>.fromOpaque($0).takeUnretainedValue() }
    }

    static func tell(_ pointer: UnsafeMutableRawPointer?, _ event: (any XMLEvents) -> Void) {
        guard let context = context(pointer), let reading = of(context), reading.defect == nil,
            let events = reading.events
        else { return }
        event(events)
        if let objection = events.objection { reading.stop(objection, context) }
    }
}
