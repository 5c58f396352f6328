"""Faults that the tests have to detect, one source line each.

`old` appears once in the file. In `new`, PLANTED is true while the fault is active. `tests` is a filter for swift test.
"""

from collections import namedtuple

Fault = namedtuple("Fault", "name file old new tests")


def unless(condition):
    """The condition, and the planted version that is always true."""
    return condition, f"PLANTED || {condition}"


POLICY = "Security/Policy/PolicyEvaluation.swift"
RETRIES = "Session/Exchange/RetryRule.swift"
SHARING = "Session/Sharing/SharedFetches.swift"
RULES = "HTTPWire/FieldRules.swift"
CHUNKS = "HTTPWire/ChunkedGrammar.swift"
PARSER = "HTTPWire/HeadParser.swift"
WRITER = "HTTPWire/HeadWriter.swift"
REDIRECTS = "Session/Exchange/Itinerary.swift"
SESSIONS = "Session/Connections/UpstreamSessionCache.swift"
ORIGIN = "Session/Connections/Origin.swift"
DIRECTORY = "Security/Files/TrustedDirectory.swift"
CONNECT = "Clients/Connections/ClientConnect.swift"
ANSWER = "Caching/CacheAnswer.swift"
STORABILITY = "Caching/Storability.swift"
BUNDLES = "Bundles/BundleVerifier.swift"

FAULTS = [
    # Pins and policy
    Fault(
        "a pin counts at any depth",
        POLICY,
        "guard let match = policy.pins.match(in: chain, position: policy.position) else {",
        "guard let match = policy.pins.match(in: chain, position: PLANTED ? .any : policy.position) else {",
        "SecurityTests",
    ),
    Fault(
        "a key that isn't pinned is accepted",
        POLICY,
        "            return mismatch(.pinMismatch, chain: chain)",
        "            return PLANTED ? accepted(chain: chain, trusted: chain) : mismatch(.pinMismatch, chain: chain)",
        "SecurityTests",
    ),
    Fault(
        "names aren't compared",
        POLICY,
        "policy.validatesDomainName ? host : nil",
        "policy.validatesDomainName && !PLANTED ? host : nil",
        "SecurityTests",
    ),
    Fault(
        "pinning without pins accepts",
        POLICY,
        "if policy.mode != .none, policy.pins.isEmpty {",
        "if policy.mode != .none, policy.pins.isEmpty, !PLANTED {",
        "SecurityTests",
    ),
    Fault(
        "on_expiry: deny doesn't deny",
        POLICY,
        "expiry.action == .deny, expiry.hasPassed(at: time) {",
        "expiry.action == .deny, expiry.hasPassed(at: time), !PLANTED {",
        "SecurityTests",
    ),
    Fault(
        "enforcement: report softens trust",
        POLICY,
        "        case .failure(let failure): refused(.trust(failure))",
        "        case .failure(let failure): PLANTED ? mismatch(.trust(failure), chain: nil) : "
        "refused(.trust(failure))",
        "SecurityTests",
    ),
    Fault(
        "report holds without anchors",
        POLICY,
        "== .report, !policy.allowsInvalidCertificates else {",
        "== .report, PLANTED || !policy.allowsInvalidCertificates else {",
        "SecurityTests",
    ),
    Fault(
        "a pinned leaf key counts for any name",
        POLICY,
        "if let name = checkedName, let failure = presented.leaf.mismatch",
        "if !PLANTED, let name = checkedName, let failure = presented.leaf.mismatch",
        "SecurityTests",
    ),
    Fault(
        "a verdict holds for ever",
        POLICY,
        "validUntil: ends.min() ?? .max)",
        "validUntil: PLANTED ? .max : ends.min() ?? .max)",
        "SecurityTests",
    ),
    # Keys of pools and caches
    Fault(
        "a session outlives its chain", SESSIONS, *unless("entry.validUntil > unixTime ? entry : nil"), "SessionTests"
    ),
    Fault(
        "sessions of an origin have no bound",
        SESSIONS,
        "if sessions.kept[key, default: []].count >= perOrigin {",
        "if sessions.kept[key, default: []].count >= perOrigin, !PLANTED {",
        "SessionTests",
    ),
    Fault(
        "a connection outlives its chain",
        ORIGIN,
        *unless("connection.validUntil > unixTime, !connection.isOver, let idle = connection as? HTTP1Upstream {"),
        "SessionTests",
    ),
    Fault(
        "a POST goes over a stale connection",
        ORIGIN,
        *unless("method.isIdempotent || !idle.stream.isStale"),
        "SessionTests|RetryTests",
    ),
    Fault(
        "a connection to a local address serves everybody",
        ORIGIN,
        *unless("reach.allows(pool.scope(at: $0))"),
        "SessionTests",
    ),
    Fault(
        "a response with a cookie is shared",
        SHARING,
        "if view.head.status == 401 || view.head.status == 407 || ",
        "if !PLANTED, view.head.status == 401 || view.head.status == 407 || ",
        "SessionTests|SharedFetch",
    ),
    Fault(
        "a private response is shared",
        SHARING,
        'if directives.contains("private") || ',
        'if !PLANTED, directives.contains("private") || ',
        "SessionTests|SharedFetch",
    ),
    Fault(
        "a request with credentials is shared",
        SHARING,
        "case .authorization: if !allowed",
        "case .authorization: if !PLANTED, !allowed",
        "SessionTests|SharedFetch",
    ),
    Fault(
        "Vary isn't looked at",
        SHARING,
        "where values(of: name) != other.values(of: name)",
        "where !PLANTED && values(of: name) != other.values(of: name)",
        "SessionTests|SharedFetch",
    ),
    Fault(
        "a leaf is shown after its renewal",
        "Security/Authority/LeafCache.swift",
        "now >= notBefore && now < renewal }",
        "now >= notBefore && (PLANTED || now < renewal) }",
        "LeafCacheTests",
    ),
    # Limits
    Fault(
        "a head has no limit",
        PARSER,
        "guard position < end else { return bytes.count >= limit ? .tooLarge : .incomplete }",
        "guard position < end else { return bytes.count >= limit && !PLANTED ? .tooLarge : .incomplete }",
        "HTTPWireTests",
    ),
    Fault(
        "a chunk's line has no limit",
        CHUNKS,
        "if lineLength > Self.lineLimit {",
        "if !PLANTED, lineLength > Self.lineLimit {",
        "HTTPWireTests",
    ),
    Fault(
        "trailers have no limit",
        CHUNKS,
        "if lineLength > Self.trailerLimit {",
        "if !PLANTED, lineLength > Self.trailerLimit {",
        "HTTPWireTests",
    ),
    Fault(
        "JSON nests without end",
        "Serialization/Response/JSON/JSONScanner.swift",
        *unless("stack.count < Self.deepest"),
        "SerializationTests",
    ),
    # Retries
    Fault(
        "a stale connection is retried for ever",
        RETRIES,
        "case .staleConnection: !hasRetriedStale",
        "case .staleConnection: PLANTED || !hasRetriedStale",
        "SessionTests",
    ),
    Fault("redirects have no bound", RETRIES, *unless("redirects < limits.redirects"), "SessionTests|RedirectTests"),
    Fault("challenges have no bound", RETRIES, *unless("challenges < limits.challenges"), "SessionTests"),
    Fault("breaks have no bound", RETRIES, *unless("breaks < limits.breaks"), "SessionTests"),
    Fault("what can't be resent is resent", RETRIES, *unless("met.isSuperset(of: rule.conditions)"), "SessionTests"),
    Fault(
        "an answered request is resent",
        RETRIES,
        "{ known.remove(.nothingAnswered) }",
        "{ if !PLANTED { known.remove(.nothingAnswered) } }",
        "SessionTests",
    ),
    # Framing
    Fault(
        "Content-Length beside Transfer-Encoding",
        RULES,
        "if contentLength != nil {",
        "if contentLength != nil, !PLANTED {",
        "HTTPWireTests",
    ),
    Fault(
        "chunks in HTTP/1.0",
        RULES,
        "return version == .http10 ? .transferEncodingBeforeHTTP11",
        "return version == .http10 && !PLANTED ? .transferEncodingBeforeHTTP11",
        "HTTPWireTests",
    ),
    Fault("a length beyond 63 bits", RULES, *unless("sum <= UInt64(Int64.max)"), "HTTPWireTests"),
    Fault("a length that isn't digits", RULES, *unless("bytes[offset].isDigit"), "HTTPWireTests"),
    Fault(
        "two lengths",
        RULES,
        "if let contentLength, contentLength != length",
        "if !PLANTED, let contentLength, contentLength != length",
        "HTTPWireTests",
    ),
    Fault("no Host", RULES, *unless("rules.host != nil || version == .http10"), "HTTPWireTests"),
    Fault(
        "reuse after a body that can't be",
        RULES,
        "if announcesBody, !Self",
        "if !PLANTED, announcesBody, !Self",
        "HTTPWireTests",
    ),
    Fault(
        "a chunk's end without CR",
        CHUNKS,
        "guard byte == .carriageReturn else { return .chunkEnd }",
        "guard PLANTED || byte == .carriageReturn else { return .chunkEnd }",
        "HTTPWireTests",
    ),
    Fault(
        "a chunk's size without LF",
        CHUNKS,
        "guard byte == .lineFeed else { return .chunkSize }",
        "guard PLANTED || byte == .lineFeed else { return .chunkSize }",
        "HTTPWireTests",
    ),
    Fault("a bare CR ends a line", PARSER, *unless("bytes[position + 1] == .lineFeed"), "HTTPWireTests"),
    Fault(
        "a truncated body passes for whole",
        "HTTPWire/BodyScanner.swift",
        "case .counting, .chunked, .broken:\n            return false",
        "case .counting, .chunked, .broken:\n            return PLANTED",
        "HTTPWireTests",
    ),
    Fault(
        "a nominated field passes",
        WRITER,
        "keeps = !(passage.hasNominations && isNominated",
        "keeps = PLANTED || !(passage.hasNominations && isNominated",
        "HTTPWireTests",
    ),
    Fault(
        "a hop's fields pass",
        WRITER,
        "                .proxyAuthenticate, .proxyAuthenticationInfo:\n                keeps = false",
        "                .proxyAuthenticate, .proxyAuthenticationInfo:\n                keeps = PLANTED",
        "HTTPWireTests",
    ),
    # Secrets on the way to another origin, and in output
    Fault(
        "credentials follow to another origin",
        REDIRECTS,
        "            credentials = nil\n            hasAskedForCredentials = false\n",
        "            if !PLANTED {\n                credentials = nil\n                hasAskedForCredentials = "
        "false\n            }\n",
        "SessionTests|RedirectTests|FollowedOriginTests|CredentialsTests|CredentialTests|Library",
    ),
    Fault(
        "cookies of another origin count",
        REDIRECTS,
        "if hasLeftOrigin { for",
        "if hasLeftOrigin, !PLANTED { for",
        "SessionTests|RedirectTests|FollowedOriginTests",
    ),
    Fault(
        "a body follows to another origin",
        REDIRECTS,
        "(status == 307 || status == 308) && followTo",
        "(PLANTED || status == 307 || status == 308) && followTo",
        "SessionTests|RedirectTests|FollowedOriginTests",
    ),
    Fault(
        "a redirect leads anywhere",
        REDIRECTS,
        *unless("url.origin == self.url.origin || url.origin == firstOrigin"),
        "SessionTests|RedirectTests|FollowedOriginTests",
    ),
    # Clients
    Fault(
        "one fit process admits all",
        "Configuration/Settings/EntryClients.swift",
        *unless("!processes.isEmpty && processes.allSatisfy"),
        "EntryClientsTests|LocalClientTests",
    ),
    Fault(
        "a user that isn't named is admitted",
        "Configuration/Settings/EntryClients.swift",
        "return isUser && holds",
        "return (isUser || PLANTED) && holds",
        "EntryClientsTests|LocalClientTests",
    ),
    Fault(
        "any client is of this machine",
        "Session/Addresses/AddressGuard.swift",
        "self = isLoopback ?",
        "self = isLoopback || PLANTED ?",
        "SessionTests|AddressTests",
    ),
    Fault(
        "SNI may differ from CONNECT",
        CONNECT,
        "?? nil, !tunnel.asked.isNamedWithPort(name) {",
        "?? nil, !PLANTED, !tunnel.asked.isNamedWithPort(name) {",
        "InterceptionOfferTests|RefusalTests|RefusalPageTests|PeculiarClientTests",
    ),
    Fault(
        "an expired authority answers CONNECT",
        CONNECT,
        "if now > signer.end {",
        "if now > signer.end, !PLANTED {",
        "AuthorityExpiryTests",
    ),
    # Stored responses
    Fault(
        "must-revalidate is served stale",
        ANSWER,
        "        if says.flags.contains(.mustRevalidate) { return false }\n",
        "        if says.flags.contains(.mustRevalidate), !PLANTED { return false }\n",
        "CachingTests",
    ),
    Fault(
        "no-cache is served without the origin",
        ANSWER,
        "        if response.directives.flags.contains(.noCache) { return .ask(.stale) }\n",
        "        if response.directives.flags.contains(.noCache), !PLANTED { return .ask(.stale) }\n",
        "CachingTests",
    ),
    Fault(
        "no-store is stored",
        STORABILITY,
        "} else if says.flags.contains(.noStore) {",
        "} else if says.flags.contains(.noStore), !PLANTED {",
        "CachingTests",
    ),
    Fault(
        "a private response is stored for everybody",
        STORABILITY,
        "if isShared, says.flags.contains(.isPrivate) {",
        "if isShared, says.flags.contains(.isPrivate), !PLANTED {",
        "CachingTests",
    ),
    Fault(
        "a response with a cookie is stored for everybody",
        STORABILITY,
        "if isShared, response.setsCookie {",
        "if isShared, response.setsCookie, !PLANTED {",
        "CachingTests",
    ),
    Fault(
        "a 304 confirms another version",
        "Caching/Confirmation.swift",
        "return stored.etag?.opaque == tag.opaque &&",
        "return (PLANTED || stored.etag?.opaque == tag.opaque) &&",
        "CachingTests",
    ),
    Fault(
        "parts of two versions become one",
        "Caching/StoredPart.swift",
        "guard tag == new.tag, complete == new.complete,",
        "guard PLANTED || tag == new.tag, complete == new.complete,",
        "CachingTests",
    ),
    # Files
    Fault(
        "another user's file is read",
        DIRECTORY,
        *unless("[0, geteuid(), owner].contains(status.st_uid)"),
        "TrustedDirectoryTests",
    ),
    Fault(
        "a file that others write is read",
        DIRECTORY,
        *unless("kind != S_IFREG || status.st_mode & (S_IWGRP | S_IWOTH) == 0"),
        "TrustedDirectoryTests",
    ),
    Fault(
        "an exposed key is read",
        "Security/Files/PrivateFile.swift",
        *unless("file.mode & (isCredential ? 0o037 : 0o077) == 0"),
        "LocalAuthorityTests",
    ),
    # Deadlines
    Fault(
        "a client may take for ever to begin TLS",
        CONNECT,
        "        server.setDeadline(afterNanoseconds: handshakeNanoseconds)\n",
        "        if !PLANTED { server.setDeadline(afterNanoseconds: handshakeNanoseconds) }\n",
        "SilentClientTests|TaskSuspensionTests",
    ),
    Fault(
        "an origin may take for ever in TLS",
        "Session/Connections/UpstreamAttempt.swift",
        "        deadline.set(afterNanoseconds: timeouts.tlsHandshake.nanoseconds)\n",
        "        if !PLANTED { deadline.set(afterNanoseconds: timeouts.tlsHandshake.nanoseconds) }\n",
        "SilentOriginTests|SessionTests",
    ),
    # The store on disk
    Fault(
        "a changed body is served",
        "DiskStore/Files/BodyReader.swift",
        "{ tags.withLock { $0.verify(bytes, at: number) } }",
        "{ tags.withLock { PLANTED || $0.verify(bytes, at: number) } }",
        "MutationTests",
    ),
    Fault(
        "a changed row is believed",
        "DiskStore/Index/RecordIndex.swift",
        "record.digest == digests[2]",
        "(PLANTED || record.digest == digests[2])",
        "MutationTests",
    ),
    Fault(
        "the store outgrows its limit",
        "DiskStore/Store/DiskStoreWriting.swift",
        *unless("state.bytes + state.reserved + bytes <= limit"),
        "LimitTests",
    ),
    Fault(
        "what a killed process leaves stays",
        "DiskStore/Store/OpenedStore.swift",
        "for id in orphans { directory.removeBody(id) }",
        "for id in orphans where !PLANTED { directory.removeBody(id) }",
        "DirectoryTests|KilledProcessTests",
    ),
    Fault(
        "a purge misses what is being written",
        "DiskStore/Store/DiskStoreState.swift",
        "in writing where isWanted(writing.identity) {",
        "in writing where isWanted(writing.identity) && !PLANTED {",
        "LimitTests",
    ),
    Fault(
        "a full disk is written to again at once",
        "DiskStore/Store/DiskStoreState.swift",
        "if let pause, pause.holds(at: now) {",
        "if let pause, pause.holds(at: now), !PLANTED {",
        "FailingDiskTests",
    ),
    Fault(
        "a link to a directory is followed",
        "DiskStore/Files/StoreDirectory.swift",
        "O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC",
        "O_RDONLY | O_DIRECTORY | (PLANTED ? 0 : O_NOFOLLOW) | O_CLOEXEC",
        "DirectoryTests",
    ),
    # From report to enforce
    Fault(
        "a clock that is set forward is evidence",
        "Security/Pins/PinHistory.swift",
        "min(max(gap, 0), Self.longestGap)",
        "(PLANTED ? gap : min(max(gap, 0), Self.longestGap))",
        "EnforcementConditionTests",
    ),
    Fault(
        "a mismatch doesn't begin the evidence anew",
        "Security/Pins/PinHistory.swift",
        "            entries.values[index].beginAnew()\n",
        "            if !PLANTED { entries.values[index].beginAnew() }\n",
        "EnforcementConditionTests",
    ),
    Fault(
        "an entry stays enforced without its pins",
        "Security/Pins/EnforcedEntries.swift",
        *unless("Set(record.pins).isSubset(of: policy.pins.pins.map(\\.description))"),
        "SecurityTests.PinRolloutTests",
    ),
    Fault(
        "an entry is enforced that isn't written down",
        "Records/State/EnforcedLedger.swift",
        "        kept.change { $0 = before }\n",
        "        if PLANTED { return true }\n        kept.change { $0 = before }\n",
        "IntegrationTests.PinRolloutTests",
    ),
    Fault(
        "what a report let through is used after the date",
        POLICY,
        "if report != nil, let end = policy.rollout",
        "if !PLANTED, report != nil, let end = policy.rollout",
        "SecurityTests.PinRolloutTests",
    ),
    Fault(
        "an own entry may enforce pins later",
        "Configuration/Policy/LocalEntries.swift",
        *unless("softer.isAsStrict(as: rollout)"),
        "PolicyTests",
    ),
    # Policy bundles
    Fault(
        "an own entry may switch pins off later",
        "Configuration/Policy/LocalEntries.swift",
        "own.expiry?.action == .report {",
        "own.expiry?.action == .report, !PLANTED {",
        "PolicyTests",
    ),
    Fault(
        "an own entry may send requests elsewhere",
        "Configuration/Policy/LocalEntries.swift",
        "if isOfEntry, own.hasBaseURL {",
        "if isOfEntry, own.hasBaseURL, !PLANTED {",
        "PolicyTests",
    ),
    Fault(
        "an address of NAT64 escapes that of IPv4",
        "Configuration/Policy/LocalEntries.swift",
        "if let translated = IPAddress(pattern.name)?.translated {",
        "if let translated = PLANTED ? nil : IPAddress(pattern.name)?.translated {",
        "PolicyTests",
    ),
    Fault(
        "a bundle names a machine's secrets",
        "Configuration/Files/PinFile.swift",
        "for file in findings.namedFiles where file.place.file.hasPrefix(BundleInForce.prefix) {",
        "for file in findings.namedFiles where !PLANTED && file.place.file.hasPrefix(BundleInForce.prefix) {",
        "PolicyTests",
    ),
    Fault(
        "an expired bundle is as good as another",
        "Configuration/Policy/KeptBundleReader.swift",
        "guard bundle.expires <= now else",
        "guard !PLANTED, bundle.expires <= now else",
        "PolicyTests",
    ),
    Fault(
        "a stolen key counts until a bundle is accepted",
        "Bundles/BundleVerifier.swift",
        "return known.under(later, envelope, insteadOf: root)",
        "return PLANTED ? known : known.under(later, envelope, insteadOf: root)",
        "BundleVerifierTests",
    ),
    Fault(
        "signatures aren't counted",
        "Bundles/BundleRoot.swift",
        "guard valid >= threshold else {",
        "guard valid >= (PLANTED ? 1 : threshold) else {",
        "BundleVerifierTests",
    ),
    Fault(
        "a signature counts by any name",
        "Bundles/Envelope.swift",
        "signatures.first { $0.keyID == key.id }",
        "signatures.first { PLANTED || $0.keyID == key.id }",
        "BundleMutationTests",
    ),
    Fault(
        "what is signed has no type",
        "Bundles/Envelope.swift",
        "guard payloadType == Self.type(of: role) else {",
        "guard PLANTED || payloadType == Self.type(of: role) else {",
        "BundleVerifierTests",
    ),
    Fault(
        "a new root isn't signed by the one before it",
        BUNDLES,
        "try current.root.requireSignatures(on: envelope, .root, version: root.version)",
        "if !PLANTED { try current.root.requireSignatures(on: envelope, .root, version: root.version) }",
        "BundleVerifierTests",
    ),
    Fault(
        "a root is skipped",
        BUNDLES,
        *unless("root.version == current.root.version + 1"),
        "BundleVerifierTests",
    ),
    Fault(
        "an older bundle is taken",
        BUNDLES,
        "if bundle.version < version {",
        "if bundle.version < version, !PLANTED {",
        "BundleVerifierTests",
    ),
    Fault(
        "an older timestamp is taken",
        BUNDLES,
        "timestamp.version < known {",
        "timestamp.version < known, !PLANTED {",
        "BundleVerifierTests",
    ),
    Fault(
        "a timestamp never expires",
        BUNDLES,
        *unless("timestamp.expires > now"),
        "BundleVerifierTests",
    ),
    Fault(
        "a timestamp holds for any bundle",
        "Bundles/BundleTimestamp.swift",
        "guard bundle.version == bundleVersion, bundle.digest == bundleDigest else {",
        "guard PLANTED || (bundle.version == bundleVersion && bundle.digest == bundleDigest) else {",
        "BundleVerifierTests",
    ),
    Fault(
        "versions are forgotten at each new root",
        "Bundles/BundleRoot.swift",
        "keys.count(where: former.keys.contains) >= threshold",
        "keys.count(where: former.keys.contains) >= threshold && !PLANTED",
        "BundleVerifierTests",
    ),
    Fault(
        "a path leads out of a bundle",
        "Bundles/PolicyBundle.swift",
        'case "..": return',
        'case ".." where !PLANTED: return',
        "BundleFormatTests",
    ),
    Fault(
        "a bundle carries secrets",
        "Configuration/Findings/NamedFile.swift",
        "        case .secret:\n",
        "        case .secret where PLANTED: nil\n        case .secret:\n",
        "PolicyFilesTests",
    ),
    # Incidents
    Fault(
        "an incident that the policy ended stays ended",
        "Records/Incidents/IncidentHistory.swift",
        "if acknowledged.isByPolicy { return .recurred }",
        "if acknowledged.isByPolicy, !PLANTED { return .recurred }",
        "IncidentLedgerTests",
    ),
    Fault(
        "a rotation needs no verification",
        "Records/Incidents/ChainComparison.swift",
        "guard isVerified else { return .unverified }",
        "guard isVerified || PLANTED else { return .unverified }",
        "ChainComparisonTests",
    ),
    Fault(
        "a clock that jumps makes incidents old",
        "Records/Incidents/SteadyClock.swift",
        "return monotonic - steadySince >= Self.trial",
        "return PLANTED || monotonic - steadySince >= Self.trial",
        "IncidentLedgerTests",
    ),
    Fault(
        "pages read who asked",
        "Clients/Refusals/ProxyError.swift",
        "report.reader = method == .connect ? .client : .content",
        "report.reader = method == .connect || PLANTED ? .client : .content",
        "ProxyErrorTests",
    ),
    # A collector
    Fault(
        "a series begins with its first mismatch",
        "Daemon/Metrics/FleetMetrics.swift",
        "if let time = entries.zero(label) {",
        "if !PLANTED, let time = entries.zero(label) {",
        "DaemonTests.TelemetryTests",
    ),
    Fault(
        "entries are named without a bound",
        "Daemon/Metrics/FleetMetrics.swift",
        "guard names.count < Self.limit else {",
        "guard PLANTED || names.count < Self.limit else {",
        "DaemonTests.TelemetryTests",
    ),
    Fault(
        "events wait without a bound",
        "Records/Log/TelemetryBuffer.swift",
        "|| bytes > Self.bytesLimit,",
        "|| (bytes > Self.bytesLimit && !PLANTED),",
        "OTLPTests",
    ),
    Fault(
        "names that the proxy answers itself go to the collector",
        "Records/Log/TelemetryBuffer.swift",
        'guard fields["trial"] == nil else {',
        'guard PLANTED || fields["trial"] == nil else {',
        "OTLPTests",
    ),
    Fault(
        "any page is a collector's answer",
        "Daemon/Telemetry/CollectorAnswer.swift",
        "return response.isBroken ? nil",
        "return response.isBroken && !PLANTED ? nil",
        "DaemonTests.TelemetryTests",
    ),
    Fault(
        "the collector is told in the clear",
        "Configuration/Files/TelemetrySection.swift",
        *unless("url.isSecure || url.isOnThisMachine"),
        "TelemetrySectionTests",
    ),
    Fault(
        "the collector's own pins don't count",
        "Daemon/Policy/PinnedService.swift",
        "policy: entry?.policy ?? snapshot.defaultPolicy",
        "policy: PLANTED ? snapshot.defaultPolicy : entry?.policy ?? snapshot.defaultPolicy",
        "IntegrationTests.TelemetryTests/pinsOfTheCollectorHold",
    ),
    Fault(
        "a directory is walked by characters",
        "Security/Files/TrustedWalk.swift",
        'path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }',
        'PLANTED\n            ? path.split(separator: "/").map(String.init)\n'
        '            : path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }',
        "TrustedDirectoryTests",
    ),
    # A session in a server
    Fault(
        "a shutdown doesn't wait for requests",
        "PinnedSessionService/SessionService.swift",
        "group.addTask { await session.finish() }",
        "group.addTask { if !PLANTED { await session.finish() } }",
        "LibraryServicesTests",
    ),
    Fault(
        "a grace period has no end",
        "PinnedSessionService/SessionService.swift",
        "try? await Task.sleep(for: gracePeriod)",
        "try? await Task.sleep(for: PLANTED ? .seconds(3600) : gracePeriod)",
        "LibraryServicesTests",
    ),
    Fault(
        "a session's log has queries",
        "PinnedSessionLogging/SessionLogging.swift",
        '"request": "\\(task.request)"',
        '"request": PLANTED ? "\\(task.request.url)" : "\\(task.request)"',
        "LibraryServicesTests",
    ),
    # The library
    Fault(
        "a response is read while its head is undecided",
        "Session/Exchange/ExchangeResponse.swift",
        *unless("undecided == nil"),
        "ExchangeTests/aGuideMayDecideLater",
    ),
    Fault(
        "a server sets a cookie for a public suffix",
        "PinnedSession/Cookies/SetCookie.swift",
        "if !domain.isEmpty, PublicSuffixes.system.contains(domain) {",
        "if !PLANTED, !domain.isEmpty, PublicSuffixes.system.contains(domain) {",
        "CookieStoreTests",
    ),
    Fault(
        "a Secure cookie goes over http",
        "PinnedSession/Cookies/CookieTable.swift",
        *unless("place.isSecure || !cookie.isSecure"),
        "CookieStoreTests",
    ),
    Fault(
        "cookies don't follow a redirect",
        "PinnedSession/ProgramGuide.swift",
        "return .replaced(by: cookies.field(for: url))",
        "return PLANTED ? .kept : .replaced(by: cookies.field(for: url))",
        "LibraryStateTests/cookiesDoNotCrossOrigins",
    ),
    Fault(
        "a host's cookie goes to the hosts below it",
        "PinnedSession/Cookies/Cookie.swift",
        "host == domain || !isHostOnly && !isAddress",
        "host == domain || (PLANTED || !isHostOnly) && !isAddress",
        "CookieStoreTests",
    ),
    Fault(
        "a body is read without its reader",
        "PinnedSession/ResponseBody.swift",
        *unless("state.waiting < ResponseBody.watermark"),
        "LibraryBodyTests/aBodyIsReadAsTheProgramReadsIt",
    ),
    Fault(
        "a coding that the program asked for is undone",
        "PinnedSession/SessionRouting.swift",
        '!request.has("accept-encoding")',
        '(PLANTED || !request.has("accept-encoding"))',
        "LibraryBodyTests/whatWasNotAskedForStays",
    ),
    Fault(
        "the first image always comes first",
        "PinnedSession/Images/ImageDownloader.swift",
        "order == .fifo ? state.queue.removeFirst()",
        "PLANTED || order == .fifo ? state.queue.removeFirst()",
        "LibraryImageTests/fourAreDownloadedAtOneTime",
    ),
    Fault(
        "a stored response passes for one of a connection",
        "PinnedSession/ProgramResponse.swift",
        "pinning: isStored",
        "pinning: isStored && !PLANTED",
        "LibraryStateTests/storedResponsesAreServed",
    ),
    Fault(
        "a host gets as many connections as there are requests",
        "PinnedSession/SessionRouting.swift",
        "rules.maxConnections = max",
        "rules.maxConnections = PLANTED ? nil : max",
        "LibraryConnectionTests/othersWaitForTheirTurn",
    ),
    Fault(
        "a request's own timeout is ignored",
        "PinnedSession/SessionRouting.swift",
        "timeout.map(terms(within:)) ?? terms",
        "PLANTED ? terms : timeout.map(terms(within:)) ?? terms",
        "LibrarySessionTests/aRequestHasATimeout",
    ),
    Fault(
        "a post doesn't wake a sleeping loop",
        "EventLoop/Inbox.swift",
        "if accepted, wakefulness",
        "if accepted, !PLANTED, wakefulness",
        "EventLoopTests/noPostIsLostAtTheMomentTheLoopFallsAsleep",
    ),
    Fault(
        "a client that leaves at once cuts its complete WebSocket",
        "Clients/HTTP2/HTTP2Server.swift",
        "where !served.door.isRelayComplete",
        "where PLANTED || !served.door.isRelayComplete",
        "HTTP2WebSocketTests/theClientLeavesAtOnce",
    ),
]
