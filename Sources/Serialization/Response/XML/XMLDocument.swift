internal import CPinproxyXML2
internal import Glibc

/// Receives the parts of a document, in order.
protocol XMLEvents: AnyObject {
    func began(_ element: String)
    func ended(_ element: String)
    /// A piece of text; the next piece may continue it.
    func found(text: UnsafeBufferPointer<UInt8>)
    /// A comment or a processing instruction.
    func foundAside()
    /// The problem of the last event; nil: no problem.
    var objection: String? { get }
    /// Whether references to entities that the document declares are allowed.
    var allowsEntities: Bool { get }
}

// One idea with XMLReading.swift: a reading reads a document, and passes on its events.

/// Checks by libxml2, without a tree, whether a document is well-formed.
///
/// It uses SAX1: with namespaces, looking up prefixes and default attributes takes disproportionate time. libxml2 gets
/// the document in pieces, until a limit is exceeded.
enum XMLDocument {
    /// Attributes of one element, compared pairwise. Database tables have up to 1,024 columns.
    static let mostAttributes = 1_400
    /// Bytes of the document type declaration. Its lists are compared pairwise; a few kilobytes are usual.
    static let longestSubset = 64 << 10
    /// Bytes that parameter entities may be replaced by: they are read as declarations.
    static let longestParameters = 64 << 10

    static var isAvailable: Bool { library != nil }

    /// Nil if the library is missing. Initialised once per process, as libxml2 requires before threads use it.
    private static let library: shim_xml? = {
        let functions = OptionalLibrary.load(SHIM_XML_FILE, shim_xml(), shim_xml_load)
        functions?.initParser()
        return functions
    }()

    /// `2.9.14`; nil if the library is missing.
    static var version: String? {
        guard library != nil, let handle = dlopen(SHIM_XML_FILE, RTLD_NOW | RTLD_LOCAL),
            let symbol = dlsym(handle, "xmlParserVersion"),
            let text = symbol.load(as: UnsafePointer<CChar>?.self),
            let number = Int(String(cString: text).prefix { $0.isNumber })
        else { return nil }
        return "\(number / 10_000).\(number / 100 % 100).\(number % 100)"
    }

    /// - Parameter events: nil: checks well-formedness only.
    static func read(_ body: [UInt8], _ events: (any XMLEvents)? = nil) throws(BodyDefect) {
        guard let library else {
            throw BodyDefect("can't be checked: \(SHIM_XML_FILE) is not installed (Debian package libxml2)")
        }
        let defect = body.withUnsafeBytes { bytes in
            let reading = XMLReading(bytes, events, library)
            return withExtendedLifetime(reading) { withErrors(to: reading) { parse(reading) } }
        }
        if let defect { throw defect }
    }

    private static func parse(_ reading: XMLReading) -> BodyDefect? {
        let library = reading.library
        let own = Unmanaged.passUnretained(reading).toOpaque()
        let context = library.createIOParserCtxt(
            nil, nil,
            { pointer, target, count in
                guard let pointer, let target else { return -1 }
                let room = UnsafeMutableRawBufferPointer(start: target, count: Int(max(count, 0)))
                return CInt(Unmanaged<XMLReading>.fromOpaque(pointer).takeUnretainedValue().read(into: room))
            }, { _ in 0 }, own, XML_CHAR_ENCODING_NONE)
        guard let context else { return BodyDefect("no memory to read it") }
        reading.context = context
        defer {
            reading.context = nil
            if let document = context.pointee.myDoc { library.freeDoc(document) }
            library.freeParserCtxt(context)
        }
        // No option that loads a DTD or an entity, none that lifts a limit (XML_PARSE_HUGE).
        _ = library.ctxtUseOptions(
            context, Int32(XML_PARSE_NONET.rawValue | XML_PARSE_COMPACT.rawValue | XML_PARSE_SAX1.rawValue))
        context.pointee._private = own
        hear(context.pointee.sax, events: reading.events != nil)
        _ = library.parseDocument(context)
        return context.pointee.wellFormed == 1 ? reading.defect : reading.defect ?? BodyDefect("not well-formed")
    }

    /// Declarations of entities stay: references are checked against them.
    private static func hear(_ handler: UnsafeMutablePointer<xmlSAXHandler>, events: Bool) {
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
        handler.pointee.getEntity = { pointer, name in
            guard let context = XMLReading.context(pointer), let reading = XMLReading.of(context) else { return nil }
            return reading.allow(reading.library.sax2GetEntity(context, name), isParameter: false, in: context)
        }
        handler.pointee.getParameterEntity = { pointer, name in
            guard let context = XMLReading.context(pointer), let reading = XMLReading.of(context) else { return nil }
            return reading.allow(reading.library.sax2GetParameterEntity(context, name), isParameter: true, in: context)
        }
        guard events else { return }
        handler.pointee.startElement = { pointer, name, _ in
            guard let name else { return }
            XMLReading.tell(pointer) { $0.began(String(cString: name)) }
        }
        handler.pointee.endElement = { pointer, name in
            guard let name else { return }
            XMLReading.tell(pointer) { $0.ended(String(cString: name)) }
        }
        let text: charactersSAXFunc = { pointer, text, count in
            XMLReading.tell(pointer) { $0.found(text: UnsafeBufferPointer(start: text, count: Int(max(count, 0)))) }
        }
        handler.pointee.characters = text
        handler.pointee.ignorableWhitespace = text
        handler.pointee.cdataBlock = text
        handler.pointee.comment = { pointer, _ in XMLReading.tell(pointer) { $0.foundAside() } }
        handler.pointee.processingInstruction = { pointer, _, _ in XMLReading.tell(pointer) { $0.foundAside() } }
    }

    /// Errors go through the thread's handler, not to standard error; the program's own is restored.
    private static func withErrors(to reading: XMLReading, _ body: () -> BodyDefect?) -> BodyDefect? {
        let library = reading.library
        let handler = library.structuredError()?.pointee
        let context = library.structuredErrorContext()?.pointee
        defer { library.setStructuredErrorFunc(context, handler) }
        library.setStructuredErrorFunc(Unmanaged.passUnretained(reading).toOpaque()) { context, error in
            guard let context, let error, error.pointee.level == XML_ERR_FATAL else { return }
            Unmanaged<XMLReading>.fromOpaque(context).takeUnretainedValue().keep(error.pointee)
        }
        return body()
    }
}
