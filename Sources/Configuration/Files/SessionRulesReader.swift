internal import Serialization
internal import Session

extension RuleBlockReader {
    func session(_ section: Section) -> WrittenTable<SessionRules> {
        let table = TableReader<SessionRules>(in: section)
        table.key(.timeout, \.timeout, .duration(.milliseconds(1)...(.days(1))))
        table.key(.redirects, \.redirects, .anyCase)
        table.key(.maxRedirects, \.maxRedirects, .integer(1...100))
        table.key(.locationField, \.locationField, .bool)
        table.optional(.credentials, \.credentials) { value in
            SecretReader(section: table.section, file: file).credentials(value, "credentials")
        }
        table.key(.resume, \.resume, .bool)
        table.key(.coalesce, \.coalesce, .bool)
        table.optional(.maxActive, \.maxActive, .integer(1...100_000))
        table.key(.order, \.order, .anyCase)
        table.key(.serviceType, \.serviceType, .anyCase)
        table.key(.allowWWAN, \.allowWWAN, .bool)
        table.optional(.baseURL, \.baseURL) { value in
            let url = table.section.scalar(value, "base_url", .baseURL)
            switch owner {
            case .defaults:
                table.section.error(
                    value, "base_url belongs to one host, and here it would send every host there; write it in an entry")
                return nil
            case .entry(let isPinned):
                guard isPinned, url?.isSecure == false else { return url }
                table.section.error(
                    value, "base_url: the entry has pins, and http:// would go round them; write an https:// URL")
                return nil
            }
        }
        return table.finish()
    }
}
