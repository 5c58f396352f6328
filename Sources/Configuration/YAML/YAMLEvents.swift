internal import CPinproxyYAML

/// The events that libyaml finds in a text, one after the other.
struct YAMLEvents: ~Copyable {
    enum Event {
        case streamStart, streamEnd
        case documentStart, documentEnd
        case alias(String)
        case scalar(Scalar)
        /// - Parameter isSet: it is tagged `!!set`, which a list can't be.
        case sequenceStart(anchor: String?, isSet: Bool)
        case sequenceEnd
        /// - Parameter isSet: it is tagged `!!set`.
        case mappingStart(anchor: String?, isSet: Bool)
        case mappingEnd
    }

    struct Scalar {
        var text: String
        /// Without quotes or a block indicator.
        var isPlain: Bool
        var hasTag: Bool
        /// It is tagged `!!set`, which a scalar can't be.
        var isSet: Bool
        var anchor: String?
    }

    /// The start of an event. Both count from 1; columns count Unicode scalars.
    typealias Mark = (line: Int, column: Int)

    // The parser knows its own address.
    private let parser: UnsafeMutablePointer<yaml_parser_t>

    /// - Parameter bytes: UTF-8 without a byte order mark; they stay where they are as long as this lives.
    init(_ bytes: UnsafeBufferPointer<UInt8>) throws(YAMLSyntaxError) {
        parser = .allocate(capacity: 1)
        parser.initialize(to: yaml_parser_t())
        guard yaml_parser_initialize(parser) == 1 else {
            parser.deallocate()
            throw .memory
        }
        yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        yaml_parser_set_input_string(parser, bytes.baseAddress, bytes.count)
    }

    deinit {
        yaml_parser_delete(parser)
        parser.deallocate()
    }

    /// Not to be asked again after an error, or after the stream's end.
    mutating func next() throws(YAMLSyntaxError) -> (event: Event, mark: Mark) {
        var raw = yaml_event_t()
        guard yaml_parser_parse(parser, &raw) == 1 else { throw YAMLSyntaxError(parser.pointee) }
        defer { yaml_event_delete(&raw) }
        return (Self.event(raw), Mark(Int(raw.start_mark.line) + 1, Int(raw.start_mark.column) + 1))
    }

    private static func event(_ raw: yaml_event_t) -> Event {
        switch raw.type {
        case YAML_STREAM_START_EVENT: .streamStart
        case YAML_DOCUMENT_START_EVENT: .documentStart
        case YAML_DOCUMENT_END_EVENT: .documentEnd
        case YAML_ALIAS_EVENT: .alias(name(raw.data.alias.anchor) ?? "")
        case YAML_SCALAR_EVENT: .scalar(scalar(raw))
        case YAML_SEQUENCE_START_EVENT:
            .sequenceStart(anchor: name(raw.data.sequence_start.anchor), isSet: isSet(raw.data.sequence_start.tag))
        case YAML_SEQUENCE_END_EVENT: .sequenceEnd
        case YAML_MAPPING_START_EVENT:
            .mappingStart(anchor: name(raw.data.mapping_start.anchor), isSet: isSet(raw.data.mapping_start.tag))
        case YAML_MAPPING_END_EVENT: .mappingEnd
        // The stream's end remains; "no event" follows it.
        default: .streamEnd
        }
    }

    private static func scalar(_ raw: yaml_event_t) -> Scalar {
        let scalar = raw.data.scalar
        // Zero bytes are possible ("\0"), so its length counts.
        let text = String(decoding: UnsafeBufferPointer(start: scalar.value, count: scalar.length), as: UTF8.self)
        return Scalar(
            text: text, isPlain: scalar.style == YAML_PLAIN_SCALAR_STYLE, hasTag: scalar.tag != nil,
            isSet: isSet(scalar.tag), anchor: name(scalar.anchor))
    }

    private static func isSet(_ tag: UnsafeMutablePointer<UInt8>?) -> Bool { name(tag) == "tag:yaml.org,2002:set" }

    private static func name(_ pointer: UnsafeMutablePointer<UInt8>?) -> String? { pointer.map { String(cString: $0) } }
}

/// Why a text is not YAML.
enum YAMLSyntaxError: Error {
    case memory
    /// A character that YAML allows nowhere.
    /// - offset: of the byte.
    case character(problem: String, offset: Int)
    /// - context: what libyaml was at when it met the problem, and the line where that begins.
    case structure(problem: String, at: YAMLEvents.Mark, context: (text: String, line: Int)?)
}

extension YAMLSyntaxError {
    fileprivate init(_ parser: yaml_parser_t) {
        let problem = parser.problem.map { String(cString: $0) } ?? "no reason given"
        switch parser.error {
        case YAML_MEMORY_ERROR: self = .memory
        case YAML_READER_ERROR: self = .character(problem: problem, offset: Int(parser.problem_offset))
        default:
            self = .structure(
                problem: problem, at: (Int(parser.problem_mark.line) + 1, Int(parser.problem_mark.column) + 1),
                context: parser.context.map { (String(cString: $0), Int(parser.context_mark.line) + 1) })
        }
    }
}
