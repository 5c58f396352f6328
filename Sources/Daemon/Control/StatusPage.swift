/// The files of the status page, from `Page`. Network data reaches the page as JSON and is inserted as text. The policy
/// is a second defence: only the page's own scripts and styles run, and no other host is contacted.
enum StatusPage {
    case index, style, icon
    case script, pinsScript, refusalsScript, incidentsScript

    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
        + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

    var response: ControlResponse {
        var response = ControlResponse(bytes, type: type)
        response.policy = Self.policy
        return response
    }

    private var bytes: [UInt8] {
        switch self {
        case .index: PackageResources.index_html
        case .style: PackageResources.page_css
        case .script: PackageResources.page_js
        case .pinsScript: PackageResources.pins_js
        case .refusalsScript: PackageResources.refusals_js
        case .incidentsScript: PackageResources.incidents_js
        case .icon: PackageResources.icon_svg
        }
    }

    private var type: String {
        switch self {
        case .index: "text/html; charset=utf-8"
        case .style: "text/css; charset=utf-8"
        case .script, .pinsScript, .refusalsScript, .incidentsScript: "text/javascript; charset=utf-8"
        case .icon: "image/svg+xml"
        }
    }
}
