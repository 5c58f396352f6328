/// Requests of OTLP in the encoding that every receiver takes, that of Protocol Buffers. Numbers of fields are those of
/// opentelemetry-proto 1.5, which never change.
package enum OTLPDocument {
    /// The sender of a document.
    package struct Resource: Sendable, Equatable {
        package let attributes: [OTLPAttribute]
        /// The program's version, also used for the scope.
        package let version: String

        package init(attributes: [OTLPAttribute], version: String) {
            self.attributes = attributes
            self.version = version
        }
    }

    package static let type = "application/x-protobuf"

    /// An `ExportMetricsServiceRequest` or `ExportLogsServiceRequest`, which differ in their items alone.
    static func request(_ items: [[UInt8]], of resource: Resource) -> [UInt8] {
        var request = ProtobufWriter()
        request.field(1) { resources in
            resources.field(1) { $0.put(resource.attributes, as: 1) }
            resources.field(2) { scope in
                scope.field(1) {
                    $0.field(1, "pinproxy")
                    $0.field(2, resource.version)
                }
                for item in items { scope.field(2, item) }
            }
        }
        return request.bytes
    }
}

extension ProtobufWriter {
    mutating func put(_ attributes: [OTLPAttribute], as number: Int) {
        for attribute in attributes {
            field(number) {
                $0.field(1, attribute.key)
                $0.put(attribute.value, as: 2)
            }
        }
    }

    mutating func put(_ value: OTLPValue, as number: Int) {
        field(number) { any in
            switch value {
            case .string(let text): any.field(1, text)
            case .bool(let isTrue): any.field(2, varint: isTrue ? 1 : 0)
            case .integer(let number): any.field(3, varint: UInt64(bitPattern: number))
            case .double(let number) where number.isFinite: any.field(4, fixed64: number.bitPattern)
            case .double(let number): any.field(1, "\(number)")
            case .array(let values): any.field(5) { for value in values { $0.put(value, as: 1) } }
            case .map(let attributes): any.field(6) { $0.put(attributes, as: 1) }
            }
        }
    }
}

/// An `AnyValue` of OTLP.
package enum OTLPValue: Sendable, Equatable {
    case string(String)
    case bool(Bool)
    case integer(Int64)
    case double(Double)
    case array([OTLPValue])
    case map([OTLPAttribute])
}

/// A `KeyValue` of OTLP.
package struct OTLPAttribute: Sendable, Equatable {
    package let key: String
    package let value: OTLPValue

    package init(_ key: String, _ value: OTLPValue) {
        self.key = key
        self.value = value
    }
}
