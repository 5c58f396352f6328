internal import Security

extension PinEntryReader {
    /// A pin and where it is written; without the pin if it is wrong.
    struct WrittenPin {
        var pin: Pin?
        var place: YAMLValue
    }

    /// The pins of the entry; nil if the key isn't written, or not as a list.
    /// - Parameter mode: what is made of a certificate's file; nil (it is wrong itself) is taken
    ///   for the public key.
    func pins(_ mode: PinningMode?) -> [WrittenPin]? {
        guard let value = section.nonNull("pins") else { return nil }
        guard case .sequence(let list) = value.content else {
            section.error(value, "\"pins\" takes a list (\"- sha256/…\"), not \(value.kind)")
            return [WrittenPin(pin: nil, place: value)]
        }
        let mode = mode == .certificate ? PinningMode.certificate : .publicKey
        return list.map { WrittenPin(pin: pin($0, mode), place: $0) }
    }

    private func pin(_ value: YAMLValue, _ mode: PinningMode) -> Pin? {
        switch value.content {
        case .scalar:
            return section.scalar(
                value, "pins",
                Form { text in
                    Result { () throws(PinError) in try Pin(text: text, for: mode) }.mapError { Reason("\($0)") }
                })
        case .mapping:
            let fields = section.element("pins", value)
            defer { fields.finish() }
            guard let written = fields.value("file") else {
                section.error(value, "a pin is sha256/… or file: NAME")
                return nil
            }
            guard let name = fields.scalar(written, "file", .path) else { return nil }
            return report(written) { () throws(PinError) in
                let path = FileContents.resolve(name, relativeTo: file)
                return try Pin(file: section.findings.sources.source(path), for: mode, origin: name)
            }
        case .null, .sequence, .set:
            section.error(value, "a pin is sha256/… or file: NAME, not \(value.kind)")
            return nil
        }
    }

    private func report(_ value: YAMLValue, _ read: () throws(PinError) -> Pin) -> Pin? {
        do {
            return try read()
        } catch {
            section.error(value, "pins: \(error)")
            return nil
        }
    }

    /// Two spellings of one pin make no backup.
    func warnOfDuplicates(_ pins: [WrittenPin]) {
        guard pins.count > 1 else { return }
        var seen: Set<Pin> = []
        for written in pins {
            guard let pin = written.pin, !seen.insert(pin).inserted else { continue }
            section.warning(written.place, "pins: this is the same pin as one above it")
        }
    }
}
