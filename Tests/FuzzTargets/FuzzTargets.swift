extension FuzzTarget {
    /// Each parser and state machine that takes a peer's bytes. Each needs a seed in `Tests/Fuzz/Corpus`.
    package static let all: [FuzzTarget] = [
        FuzzTarget("request-head", Heads.request),
        FuzzTarget("response-head", Heads.response),
        FuzzTarget("chunked-body", Chunks.body),
        FuzzTarget("authority", Authorities.authority),
        FuzzTarget("url", Authorities.url),
        FuzzTarget("path", Authorities.path),
        FuzzTarget("client-hello", Hellos.client),
        FuzzTarget("server-flight", Hellos.server),
        FuzzTarget("proxy-header", ProxyHeaders.header),
        FuzzTarget("challenge", FieldValues.challenge),
        FuzzTarget("content-range", FieldValues.contentRange),
        FuzzTarget("field-value", FieldValues.others),
        FuzzTarget("json", Bodies.json),
        FuzzTarget("xml", Bodies.xml),
        FuzzTarget("property-list", Bodies.propertyList),
        FuzzTarget("image", Bodies.image),
        FuzzTarget("content-coding", Bodies.contentCoding),
    ]
}
