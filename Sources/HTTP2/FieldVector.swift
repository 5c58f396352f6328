import CPinproxyNGHTTP2
import PinproxyHTTPWire

/// A reusable array of `nghttp2_nv`. nghttp2 copies names and values.
struct FieldVector {
    /// Room for the longest block so far; a shorter one uses the first entries.
    private var entries: [nghttp2_nv] = []

    /// Calls `body` with a block's fields.
    /// - Parameter priority: replaces the block's Priority field.
    mutating func with<Result>(
        _ block: borrowing FieldBlock, priority: HTTP2Priority?, _ body: (UnsafePointer<nghttp2_nv>?, Int) -> Result
    ) -> Result {
        guard var text = priority?.description else { return fill(block, nil, body) }
        return text.withUTF8 { fill(block, $0, body) }
    }

    private mutating func fill<Result>(
        _ block: borrowing FieldBlock, _ priority: UnsafeBufferPointer<UInt8>?,
        _ body: (UnsafePointer<nghttp2_nv>?, Int) -> Result
    ) -> Result {
        let most = block.fields.count + 1
        if entries.count < most {
            entries += repeatElement(nghttp2_nv(), count: most - entries.count)
        }
        return block.bytes.withUnsafeBufferPointer { bytes in
            entries.withUnsafeMutableBufferPointer { entries in
                var count = 0
                for index in 0..<block.fields.count {
                    let field = block.fields[index]
                    if priority != nil, bytes[field.name.offsets].elementsEqual("priority".utf8) { continue }
                    let flag = field.isNeverIndexed ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE
                    // nghttp2 only reads them.
                    let base = UnsafeMutablePointer(mutating: bytes.baseAddress)
                    entries[count] = nghttp2_nv(
                        name: base.map { $0 + field.name.start }, value: base.map { $0 + field.value.start },
                        namelen: field.name.count, valuelen: field.value.count, flags: UInt8(flag.rawValue))
                    count += 1
                }
                if let priority {
                    let name: StaticString = "priority"
                    entries[count] = nghttp2_nv(
                        name: UnsafeMutablePointer(mutating: name.utf8Start),
                        value: UnsafeMutablePointer(mutating: priority.baseAddress),
                        namelen: name.utf8CodeUnitCount, valuelen: priority.count,
                        flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue))
                    count += 1
                }
                return body(UnsafePointer(entries.baseAddress), count)
            }
        }
    }
}
