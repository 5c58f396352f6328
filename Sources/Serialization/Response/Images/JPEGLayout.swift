/// How a JPEG is coded, by its markers (ITU-T T.81, annex B), found as libjpeg finds them.
struct JPEGLayout {
    /// Its coefficients are held whole: more than one scan makes up a component or the image.
    private(set) var isHeldWhole = false
    /// Passes over the image.
    private(set) var scans = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>) {
        var components = 0
        var at = 2
        while let marker = Self.nextMarker(bytes, &at) {
            switch marker {
            case 0x01, 0xD0...0xD8: continue
            case 0xD9: return
            default: break
            }
            guard at + 2 <= bytes.count else { return }
            let length = Int(bytes[at]) << 8 | Int(bytes[at + 1])
            switch marker {
            // SOF2, SOF6, SOF10 and SOF14 are progressive (table B.1).
            case 0xC2, 0xC6, 0xCA, 0xCE: isHeldWhole = true
            case 0xC0, 0xC1, 0xC3, 0xC5, 0xC7, 0xC9, 0xCB, 0xCD, 0xCF:
                if length >= 8, at + 7 < bytes.count { components = Int(bytes[at + 7]) }
            case 0xDA:
                scans += 1
                if at + 2 < bytes.count, Int(bytes[at + 2]) < components { isHeldWhole = true }
            default: break
            }
            // libjpeg refuses a shorter one.
            at += max(length, 2)
        }
    }

    /// Goes past what is between two segments: the data of a scan, or bytes that don't belong there.
    private static func nextMarker(_ bytes: UnsafeBufferPointer<UInt8>, _ at: inout Int) -> UInt8? {
        while at < bytes.count {
            guard bytes[at] == 0xFF else {
                at += 1
                continue
            }
            while at < bytes.count, bytes[at] == 0xFF { at += 1 }
            guard at < bytes.count else { return nil }
            at += 1
            // 0 stands for the byte 0xFF in the data of a scan.
            if bytes[at - 1] != 0 { return bytes[at - 1] }
        }
        return nil
    }
}
