import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySerialization
import PinproxySession
import PinproxyTransport

/// Applies the request rules of a host before a request is passed on.
extension ClientRequest {
    /// Applies `base_url` and `upgrade_insecure`. Nil: the request was refused.
    /// - Parameter followsBase: false: it comes from a base, and no second one applies.
    func settled(_ authority: Authority, _ purpose: Purpose, followsBase: Bool = true) -> (Authority, Purpose)? {
        guard purpose == .plain else { return (authority, purpose) }
        let snapshot = worker.snapshot
        let canonical = authority.canonical
        let entry = snapshot.entry(for: canonical.host, port: canonical.port)
        guard let layers = entry == nil ? snapshot.defaultRules : entry?.rules,
            case .success(let rules) = server.readRequest({ worker.rules(of: layers, for: $0) })
        else { return (authority, purpose) }
        if followsBase, let base = rules.session.baseURL { return rebased(on: base) }
        guard rules.request.upgradeInsecure else { return (authority, purpose) }
        return (authority.port == 80 ? authority.onPort(443) : authority, .secure)
    }

    /// Moves the request to a base, as if the client had asked for that URL.
    private func rebased(on base: BaseURL) -> (Authority, Purpose)? {
        guard let target = server.readRequest({ base.url(of: $0) }) else {
            server.refuseRequest(.pathAboveBase(host: base.authority.host))
            return nil
        }
        do {
            let request = try server.readRequest { OwnedRequest($0) }.rewritten(target: target)
            server.replaceRequest(with: request)
            record.moved(to: request.view)
        } catch {
            server.refuseRequest(.badRequest(error))
            return nil
        }
        return settled(base.authority, base.isSecure ? .secure : .plain, followsBase: false)
    }

    func beginShaped(_ route: Route, by layers: RuleLayers) {
        let place = (host: route.authority.host, entry: route.entry?.location)
        guard case .success(let rules) = server.readRequest({ worker.rules(of: layers, for: $0) }) else {
            return server.refuseRequest(.ambiguousPath(host: place.host, entry: place.entry))
        }
        rules.counts.countExchange()
        timeout = rules.timeout
        if case .plain = route.target.layer, rules.sendsSecret {
            return server.refuseRequest(.secretInTheClear(host: place.host, entry: place.entry))
        }
        if let refusal = worker.session.connector.network.outlook.refusal(by: rules, to: route.target) {
            return server.refuseRequest(.upstream(refusal, route.authority, route.destination.source))
        }
        guard rules.writesRequests else { return begin(route, rules) }
        let outline = server.readRequest { RequestOutline($0) }
        do throws(RequestSerializationError) {
            switch try rules.request.serialize(into: outline) {
            case .unchanged: convertBody(route, rules)
            case .target(let target):
                write(route, rules) { (request: OwnedRequest) throws(WireError) in try request.rewritten(target: target)
                }
            case .body(let body, let type):
                let budget = worker.session.slabs.budget
                guard let reservation = BodyReservation(of: budget, for: .request, bytes: body.count) else {
                    return refuseForBudget(route)
                }
                write(route, rules, body: HeldBody(body, holding: reservation)) {
                    (request: OwnedRequest) throws(WireError) in
                    try request.rewritten(contentType: type, bodyLength: body.count)
                }
            case .form(let form): try send(form, route, rules)
            }
        } catch {
            let rule = rules.source(of: error) ?? ProxyError.requestRules(of: place.entry)
            server.refuseRequest(.unserializable(error, host: place.host, rule: rule))
        }
    }

    private func begin(_ route: Route, _ rules: ExchangeRules) {
        server.begin(to: route.destination, by: rules, over: connection.takeKept(for: route)?.lease())
    }

    private func write(
        _ route: Route, _ rules: ExchangeRules, body: HeldBody? = nil,
        _ rewrite: (OwnedRequest) throws(WireError) -> OwnedRequest
    ) {
        do {
            let request = try rewrite(server.readRequest { OwnedRequest($0) })
            server.replaceRequest(with: request, body: body)
            begin(route, rules)
        } catch {
            server.refuseRequest(.badRequest(error))
        }
    }

    // MARK: Bodies

    /// Converts the body to the rules' format, if they cover its own.
    private func convertBody(_ route: Route, _ rules: ExchangeRules) {
        guard let conversion = rules.request.convertBody, server.readRequest({ RequestOutline($0).hasBody }),
            let type = server.readRequest({ view in view.head.first(.contentType).map { $0.text(in: view.bytes) } }),
            conversion.applies(to: type)
        else { return begin(route, rules) }
        guard server.readRequest({ $0.head.first(.contentEncoding) }) == nil else {
            return server.refuseRequest(.codedBody(host: route.authority.host))
        }
        let limit = route.snapshot.limits.inspectedBody
        let rate = rules.minimumRate ?? route.snapshot.limits.minimumRate
        server.gatherBody(limit: limit, rate: rate) { [weak self] progress in
            guard let self else { return }
            switch progress {
            case .complete(let body, let reservation):
                convert(body, reservation, type, route, rules, conversion, limit: limit)
            case .noBudget: refuseForBudget(route)
            case .malformed(let error): server.refuseRequest(.badRequest(error))
            case .tooLong: server.refuseRequest(.bodyTooLong(limit: limit, host: route.authority.host))
            }
        }
    }

    private func convert(
        _ body: [UInt8], _ reservation: BodyReservation, _ type: String, _ route: Route, _ rules: ExchangeRules,
        _ conversion: BodyConversion, limit: Int
    ) {
        server.setDeadline(afterNanoseconds: worker.serverSettings.idleNanoseconds)
        conversionTicket = worker.session.bodies.perform(
            BodyConversionWork(conversion, contentType: type, limit: limit), on: body, of: route.authority.host,
            holding: reservation, loop: worker.loop
        ) { [weak self] outcome in
            self?.converted(outcome, reservation, route, rules, conversion)
        }
    }

    private func converted(
        _ outcome: Result<BodyConversionWork.Outcome, BodyWorkFailure>, _ reservation: BodyReservation, _ route: Route,
        _ rules: ExchangeRules, _ conversion: BodyConversion
    ) {
        guard server.isHeld else { return }
        if holdsBack({ $0.converted(outcome, reservation, route, rules, conversion) }) { return }
        server.clearDeadline()
        switch outcome {
        case .success(.success(let body)):
            guard reservation.resize(to: body.count) else { return refuseForBudget(route) }
            write(route, rules, body: HeldBody(body, holding: reservation)) {
                (request: OwnedRequest) throws(WireError) in
                try request.rewritten(contentType: conversion.to.contentType, bodyLength: body.count)
            }
        case .success(.failure(let error)):
            let rule = rules.source(of: [.convertBody]) ?? ProxyError.requestRules(of: route.entry?.location)
            server.refuseRequest(.unconvertible(error, host: route.authority.host, rule: rule))
        case .failure(let failure): server.refuseRequest(.notConverted(failure, host: route.authority.host))
        }
    }

    private func refuseForBudget(_ route: Route) {
        let limit = worker.session.slabs.budget.limit
        server.refuseRequest(.notConverted(.noBudget(limit: limit), host: route.authority.host))
    }

    /// Sends a form while its files are read.
    private func send(
        _ form: MultipartForm, _ route: Route, _ rules: ExchangeRules
    ) throws(RequestSerializationError) {
        let body = try form.open()
        let queue: WorkQueue
        do throws(SystemError) {
            queue = try WorkQueue("files", isBackground: true)
        } catch {
            return server.refuseRequest(.notConverted(.unavailable("\(error)"), host: route.authority.host))
        }
        do {
            let request = try server.readRequest { OwnedRequest($0) }
                .rewritten(contentType: form.contentType, bodyLength: body.contentLength)
            // Files may change before a second sending.
            let files = FileSource(UploadReader(body, on: queue), on: worker.loop, canRewind: false)
            let upload = UploadBody(files) { [weak server] in
                guard let server, server.exchange.isInFlight else { return }
                _ = server.exchange.downstreamIsReadable()
            }
            server.replaceRequest(with: request, body: upload)
            begin(route, rules)
        } catch {
            server.refuseRequest(.badRequest(error))
        }
    }
}

extension BaseURL {
    /// The whole URL of a request relative to it.
    fileprivate func url(of request: borrowing RequestView) -> [UInt8]? {
        var path = request.head.target
        if case .absolute(let parts) = request.head.targetForm { path = parts.pathAndQuery }
        return url(of: request.bytes.extracting(path.offsets).array[...])
    }
}

extension RequestOutline {
    init(_ view: borrowing RequestView) {
        let bytes = view.bytes
        self.init(
            method: String(decoding: bytes.extracting(view.head.methodRange.offsets).array, as: UTF8.self),
            target: bytes.extracting(view.head.target.offsets).array,
            hasContentType: view.head.first(.contentType) != nil, hasBody: !view.head.bodyLength.isEmpty)
    }
}
