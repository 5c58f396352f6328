internal import CXML2
internal import Glibc

/// libxml2 as a judge: it reads a document to its end and builds no tree. It is loaded with the first document.
enum XMLWellFormedness {
    /// Nil if the library isn't there. Initialised once for the process; libxml2 wants it before threads use it.
    private static let library: shim_xml? = {
        var functions = shim_xml()
        guard let handle = dlopen(SHIM_XML_FILE, RTLD_NOW | RTLD_LOCAL), shim_xml_load(handle, &functions) else { return nil }
        functions.initParser()
        return functions
    }()

    /// What is noted while a document is read.
    private final class Reading {
        /// The first fatal error.
        private(set) var defect: BodyDefect?
        /// Bytes of replacement text that references may still amount to. libxml2 has a bound of its own, which
        /// parameter entities get round.
        private var allowance: Int
        let library: shim_xml

        init(length: Int, library: shim_xml) {
            allowance = max(1 << 20, 10 * length)
            self.library = library
        }

        func keep(_ error: xmlError) {
            let message = error.message.map { String(cString: $0) } ?? "error \(error.code)"
            keep(ShownBytes.line(message), line: error.line, column: error.int2)
        }

        private func keep(_ explanation: String, line: Int32, column: Int32) {
            guard defect == nil else { return }
            let place = line > 0 ? TextPlace(line: Int(line), column: column > 0 ? Int(column) : nil) : nil
            defect = BodyDefect(explanation, at: place)
        }

        /// - Parameter context: of the document, or of an entity within it.
        /// - Returns: the entity, nil if the document has used up what it may expand to.
        func allow(_ entity: xmlEntityPtr?, in context: xmlParserCtxtPtr) -> xmlEntityPtr? {
            guard let entity else { return nil }
            allowance -= Int(max(entity.pointee.length, 0)) + 32
            guard allowance < 0 else { return entity }
            let input = context.pointee.input
            keep("its entities expand too much, as in a bomb", line: input?.pointee.line ?? 0, column: input?.pointee.col ?? 0)
            library.stopParser(context)
            return nil
        }

        static func of(_ context: xmlParserCtxtPtr) -> Reading? {
            context.pointee._private.map { Unmanaged<Reading>.fromOpaque($0).takeUnretainedValue() }
        }
    }

    static func check(_ body: [UInt8]) throws(BodyDefect) {
        guard let library else { throw BodyDefect("can't be judged: \(SHIM_XML_FILE) is not installed (Debian package libxml2)") }
        guard body.count <= Int32.max else { throw BodyDefect("longer than 2 GiB") }
        let reading = Reading(length: body.count, library: library)
        let isWellFormed = withExtendedLifetime(reading) {
            withErrors(to: reading) { body.withUnsafeBytes { parse($0, reading) } }
        }
        guard !isWellFormed else { return }
        throw reading.defect ?? BodyDefect("not well-formed")
    }

    private static func parse(_ body: UnsafeRawBufferPointer, _ reading: Reading) -> Bool {
        let library = reading.library
        let text = body.baseAddress?.assumingMemoryBound(to: CChar.self)
        guard let context = library.createMemoryParserCtxt(text, Int32(body.count)) else { return false }
        defer {
            if let document = context.pointee.myDoc { library.freeDoc(document) }
            library.freeParserCtxt(context)
        }
        // No option that loads a DTD or an entity, none that lifts a limit (XML_PARSE_HUGE).
        _ = library.ctxtUseOptions(context, Int32(XML_PARSE_NONET.rawValue | XML_PARSE_COMPACT.rawValue))
        keepNothing(context.pointee.sax)
        context.pointee._private = Unmanaged.passUnretained(reading).toOpaque()
        context.pointee.sax.pointee.getEntity = { pointer, name in
            guard let context = pointer?.assumingMemoryBound(to: xmlParserCtxt.self) else { return nil }
            guard let reading = Reading.of(context) else { return nil }
            return reading.allow(reading.library.sax2GetEntity(context, name), in: context)
        }
        context.pointee.sax.pointee.getParameterEntity = { pointer, name in
            guard let context = pointer?.assumingMemoryBound(to: xmlParserCtxt.self) else { return nil }
            guard let reading = Reading.of(context) else { return nil }
            return reading.allow(reading.library.sax2GetParameterEntity(context, name), in: context)
        }
        _ = library.parseDocument(context)
        return context.pointee.wellFormed == 1
    }

    /// Declarations of entities stay: references are checked against them.
    private static func keepNothing(_ handler: UnsafeMutablePointer<xmlSAXHandler>) {
        handler.pointee.startElementNs = nil
        handler.pointee.endElementNs = nil
        handler.pointee.startElement = nil
        handler.pointee.endElement = nil
        handler.pointee.characters = nil
        handler.pointee.cdataBlock = nil
        handler.pointee.ignorableWhitespace = nil
        handler.pointee.comment = nil
        handler.pointee.processingInstruction = nil
        handler.pointee.reference = nil
        handler.pointee.attributeDecl = nil
        handler.pointee.elementDecl = nil
        handler.pointee.notationDecl = nil
        handler.pointee.externalSubset = nil
        handler.pointee.resolveEntity = nil
        handler.pointee.warning = nil
        handler.pointee.error = nil
        handler.pointee.fatalError = nil
    }

    /// Errors go through the thread's handler; without one, some would go to standard error. That of the program,
    /// if it has one, is put back.
    private static func withErrors(to reading: Reading, _ body: () -> Bool) -> Bool {
        let library = reading.library
        let handler = library.structuredError()?.pointee
        let context = library.structuredErrorContext()?.pointee
        defer { library.setStructuredErrorFunc(context, handler) }
        library.setStructuredErrorFunc(Unmanaged.passUnretained(reading).toOpaque()) { context, error in
            guard let context, let error, error.pointee.level == XML_ERR_FATAL else { return }
            Unmanaged<Reading>.fromOpaque(context).takeUnretainedValue().keep(error.pointee)
        }
        return body()
    }
}
