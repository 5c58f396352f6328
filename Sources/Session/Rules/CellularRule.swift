extension NetworkOutlook {
    /// Why these rules keep an exchange from the target for now, if they do.
    package func refusal(by rules: ExchangeRules, to target: UpstreamTarget) -> UpstreamFailure? {
        guard isViaWWAN, !rules.session.allowWWAN, let link = cellularLink(to: target.dialledHost) else { return nil }
        return .cellularForbidden(link: link)
    }
}
