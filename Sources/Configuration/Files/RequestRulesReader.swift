internal import PinproxySerialization

extension RuleBlockReader {
    func request(_ section: Section) -> WrittenTable<RequestRules> {
        let table = TableReader<RequestRules>(in: section)
        let reader = RequestValues(section: table.section, file: file)
        table.key(.headers, \.headers) { reader.headers($0, "headers") }
        table.key(.setHeaders, \.setHeaders) { reader.headers($0, "set_headers") }
        table.key(.removeHeaders, \.removeHeaders) { table.elements($0, .removeHeaders, .checked(HeaderName.init)) }
        table.key(.acceptLanguage, \.acceptLanguage) { value in
            let languages = table.elements(value, .acceptLanguage, .checked(LanguageRange.init))
            guard let languages, languages.count > LanguageRange.most else { return languages }
            table.section.error(
                value, "accept_language: there are more than \(LanguageRange.most) languages; leave out the last")
            return nil
        }
        table.optional(.authorization, \.authorization) { value in
            SecretReader(section: table.section, file: file).credentials(value, "authorization")
        }
        table.key(.cookies, \.cookies, .anyCase)
        table.key(.serializer, \.serializer, .anyCase)
        table.key(.parameters, \.parameters) { value in
            table.section.pairs(value, "parameters").map { $0.map(ParameterValue.Pair.init) }
        }
        table.key(.queryMethods, \.queryMethods) { table.elements($0, .queryMethods, .checked(MethodName.init)) }
        table.optional(.convertBody, \.convertBody, reader.conversion)
        table.key(.parts, \.parts, reader.parts)
        table.optional(.throttle, \.throttle, reader.throttle)
        table.key(.upgradeInsecure, \.upgradeInsecure, .bool)
        reader.refuseContradictingHeaders(table.table)
        return table.finish()
    }
}

/// The values of `request` that are more than a word or a list of words.
private struct RequestValues {
    let section: Section
    /// The file that the section is in; paths are relative to it.
    let file: String

    // MARK: Header fields

    /// `{NAME: VALUE}`, where the value may be `{file: NAME}`.
    func headers(_ value: YAMLValue, _ key: String) -> [HeaderField]? {
        guard let pairs = section.pairs(value, key) else { return nil }
        var fields: [HeaderField] = []
        for pair in pairs {
            switch Form.checked(HeaderName.init).readShowably(pair.key) {
            case .failure(let reason): section.error(section.place(of: pair), "\(key): \(reason.text)")
            case .success(let name):
                if fields.contains(where: { $0.name == name }) {
                    section.error(section.place(of: pair), "\(key): \(name) is written twice")
                }
                if let value = headerValue(pair.value, of: name) {
                    fields.append(HeaderField(name: name, value: value))
                }
            }
        }
        return fields.count == pairs.count ? fields : nil
    }

    private func headerValue(_ value: YAMLValue, of name: HeaderName) -> HeaderValue? {
        guard case .mapping = value.content else {
            guard name.description.lowercased() != "authorization" else {
                section.error(
                    value,
                    "\(name): a secret doesn't belong in this file; write {file: NAME} with a file that contains the "
                        + "value and is readable by its owner only, or use request.authorization")
                return nil
            }
            return section.scalar(
                value, name.description, .checked { text throws(InvalidValue) in try HeaderValue(text) })
        }
        let fields = section.element(name.description, value)
        defer { fields.finish() }
        return fields.required("file", of: value, name.description) { path in
            guard let text = SecretReader(section: fields, file: file).secret(path, "file") else { return nil }
            warn(ofBareToken: text, as: name, at: path, fields)
            do throws(InvalidValue) {
                return try HeaderValue(text, isSecret: true)
            } catch {
                section.error(path, "file: \(error)")
                return nil
            }
        }
    }

    /// `Authorization` begins with its scheme (RFC 9110 section 11.4). The token is not shown.
    private func warn(ofBareToken text: String, as name: HeaderName, at place: YAMLValue, _ fields: Section) {
        guard fields.findings.readsSecrets, name.description.lowercased() == "authorization", !text.contains(" ")
        else { return }
        fields.warning(
            place,
            "\(name): the file \(text.isEmpty ? "is empty" : "holds one word, and no scheme before it"); most servers "
                + "expect the line to be Bearer TOKEN, or another scheme and a space before the token")
    }

    /// One table can't set a field and remove it, or set it in two ways.
    func refuseContradictingHeaders(_ table: WrittenTable<RequestRules>) {
        let rules = table.values
        var uses: [(key: RequestRules.Key, name: HeaderName)] = []
        uses += rules.headers.map { (.headers, $0.name) }
        uses += rules.setHeaders.map { (.setHeaders, $0.name) }
        uses += rules.removeHeaders.map { (.removeHeaders, $0) }
        func note(_ key: RequestRules.Key, _ name: String) {
            if let name = try? HeaderName(name) { uses.append((key, name)) }
        }
        if !rules.acceptLanguage.isEmpty { note(.acceptLanguage, "Accept-Language") }
        if rules.authorization != nil { note(.authorization, "Authorization") }
        var first: [HeaderName: RequestRules.Key] = [:]
        for use in uses {
            guard let other = first.updateValue(use.key, forKey: use.name), other != use.key,
                let place = table.places[use.key]
            else { continue }
            section.error(
                place, "\(use.key.rawValue): \(use.name) is in \(other.rawValue) as well; write it in one of them")
        }
    }

    // MARK: Bodies

    func conversion(_ value: YAMLValue) -> BodyConversion? {
        let fields = section.element("convert_body", value)
        defer { fields.finish() }
        guard case .mapping = value.content else { return nil }
        func form(_ key: String) -> BodyConversion.Form? {
            fields.required(key, of: value, "convert_body") { fields.scalar($0, key, .anyCase) }
        }
        guard case (let from?, let to?) = (form("from"), form("to")) else { return nil }
        guard from != to else {
            section.error(value, "convert_body: from and to are the same")
            return nil
        }
        return BodyConversion(from: from, to: to)
    }

    func throttle(_ value: YAMLValue) -> Throttle? {
        let fields = section.element("throttle", value)
        defer { fields.finish() }
        guard case .mapping = value.content else { return nil }
        let packet = fields.required("packet", of: value, "throttle") {
            fields.scalar($0, "packet", .size(1...1 << 24))
        }
        let delay = fields.required("delay", of: value, "throttle") {
            fields.scalar($0, "delay", .duration(.milliseconds(1)...(.seconds(60))))
        }
        guard let packet, let delay else { return nil }
        return Throttle(packet: packet, delay: delay)
    }

    func parts(_ value: YAMLValue) -> [MultipartPart]? {
        guard let list = section.elements(value, "parts") else { return nil }
        let parts = list.map(part)
        return parts.contains { $0 == nil } ? nil : parts.compactMap(\.self)
    }

    /// `{name: , value: , file_name: , type: }` or `{name: , file: , file_name: , type: }`.
    private func part(_ value: YAMLValue) -> MultipartPart? {
        let fields = section.element("parts", value)
        defer { fields.finish() }
        guard case .mapping = value.content else { return nil }
        let name = fields.required("name", of: value, "parts") { fields.scalar($0, "name", .text) }
        let content: MultipartPart.Content?
        switch (fields.value("value"), fields.value("file")) {
        case (let text?, nil): content = dataContent(fields, text)
        case (nil, let path?): content = fileContent(fields, path)
        case (nil, nil), (_?, _?):
            section.error(value, "parts: a part has either a value or a file")
            content = nil
        }
        guard let name, let content else { return nil }
        do throws(InvalidValue) {
            return try MultipartPart(name: name, content: content)
        } catch {
            section.error(value, "parts: \(error)")
            return nil
        }
    }

    private func dataContent(_ fields: Section, _ written: YAMLValue) -> MultipartPart.Content? {
        guard let (fileName, type) = fileTraits(fields), let text = fields.scalar(written, "value", .text) else {
            return nil
        }
        return fileName == nil && type == nil ? .value(text) : .data(Array(text.utf8), fileName: fileName, type: type)
    }

    /// The file name and type of a part's content; nil: they are invalid.
    private func fileTraits(_ fields: Section) -> (fileName: String?, type: MediaType?)? {
        let fileName = fields.read("file_name", .text)
        let type = fields.read("type", Form.checked(MediaType.init))
        let isWrong = fileName == nil && fields.value("file_name") != nil || type == nil && fields.value("type") != nil
        return isWrong ? nil : (fileName, type)
    }

    private func fileContent(_ fields: Section, _ written: YAMLValue) -> MultipartPart.Content? {
        let traits = fileTraits(fields)
        guard let name = fields.scalar(written, "file", .path) else { return nil }
        let path = fields.path(name, at: written, "file", .content, relativeTo: file)
        if let reason = FileContents.reasonAgainstReading(path) {
            fields.error(written, "file: \(path): \(reason)")
            return nil
        }
        guard let (fileName, type) = traits else { return nil }
        return .file(path: path, name: fileName ?? String(name.split(separator: "/").last ?? ""), type: type)
    }
}

extension ParameterValue.Pair {
    fileprivate init(_ pair: YAMLPair) { self.init(key: pair.key, value: ParameterValue(pair.value)) }
}

extension ParameterValue {
    fileprivate init(_ value: YAMLValue) {
        switch value.content {
        case .null: self = .null
        case .scalar(let text): self = value.isWord ? ParameterValue(word: text) : .string(text)
        case .sequence(let list): self = .array(list.map(ParameterValue.init))
        case .mapping(let pairs): self = .dictionary(pairs.map(Pair.init))
        case .set(let members): self = .set(Set(members.map(ParameterValue.init)))
        }
    }
}

extension RuleBlockReader {
    func response(_ section: Section) -> WrittenTable<ResponseRules> {
        let table = TableReader<ResponseRules>(in: section)
        table.optional(.status, \.status) { table.nonEmptyElements($0, .status, .checked(StatusRange.init)) }
        table.optional(.contentTypes, \.contentTypes) {
            table.nonEmptyElements($0, .contentTypes, .checked(MediaRange.init))
        }
        table.key(.serializer, \.serializers) { (value: YAMLValue) -> [ResponseRules.Serializer]? in
            guard let serializers = table.nonEmptyElements(value, .serializer, Form<ResponseRules.Serializer>.anyCase)
            else { return nil }
            if serializers.dropLast().contains(.http) {
                table.section.error(value, "serializer: http accepts every body, so later ones are never tried")
                return nil
            }
            return serializers
        }
        table.key(.removeNullValues, \.removeNullValues, .bool)
        table.optional(.maxBody, \.maxBody, .size(0...1 << 40))
        table.key(.oversize, \.oversize, .anyCase)
        table.key(.enforcement, \.enforcement, .anyCase)
        return table.finish()
    }
}
