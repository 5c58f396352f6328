internal import Serialization

extension RuleBlockReader {
    func response(_ section: Section) -> WrittenTable<ResponseRules> {
        let table = TableReader<ResponseRules>(in: section)
        table.optional(.status, \.status) { table.nonEmptyElements($0, .status, .checked(StatusRange.init)) }
        table.optional(.contentTypes, \.contentTypes) {
            table.nonEmptyElements($0, .contentTypes, .checked(MediaRange.init))
        }
        table.key(.serializer, \.serializers) { (value: YAMLValue) -> [ResponseRules.Serializer]? in
            guard let serializers = table.nonEmptyElements(value, .serializer, Form<ResponseRules.Serializer>.anyCase) else { return nil }
            if serializers.dropLast().contains(.http) {
                table.section.error(value, "serializer: http accepts every body, so what follows it is never asked")
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
