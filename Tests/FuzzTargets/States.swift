import PinproxyClients
import PinproxySession

/// State machines: a byte is an event. In any order, they end once, and nothing follows the end.
enum States {
    /// `ExchangeStateTests` visits every state with few retries; this uses as many as possible.
    static func exchange(_ bytes: [UInt8]) {
        var choices = Choices(bytes, count: 3)
        let limits = RetryRule.Limits(
            redirects: choices.byte(), challenges: choices.byte(), breaks: choices.byte() & 15)
        var state = ExchangeState()
        var connections = 0
        for byte in choices.input {
            let event = exchangeEvent(byte, limits)
            let (wasInFlight, action) = (state.isInFlight, state.received(event))
            if !wasInFlight {
                if case .requestArrived = event {
                    connections = 0
                } else {
                    require(action == .none, "nothing is done without an exchange: \(action) after \(event)")
                }
            }
            switch action {
            case .finish, .becomeRelay, .refuse, .cut: require(wasInFlight && !state.isInFlight, "\(action) is an end")
            case .open, .askAgain: connections += 1
            default: require(state.isInFlight || !wasInFlight, "an exchange ends with a word: \(action) after \(event)")
            }
            // Each redirect and each hop's challenges may take a connection, and each of those a second one. Each hop
            // may leave some requests unprocessed, and one may need a separate connection.
            let hops = Int(limits.redirects) + 1
            let most = 2 * (3 + hops * (Int(limits.challenges) + 1)) + hops * Int(limits.unprocessed)
            require(connections <= most, "connections are bounded: \(connections) of \(most)")
            require(
                !state.isSuspended || !state.movesBody && !state.passesRequest,
                "nothing moves while an exchange is suspended")
            _ = (state.patience, state.words, state.asksForRest)
        }
        if state.isInFlight {
            _ = state.received(.cancel(isTold: true))
            require(!state.isInFlight, "an exchange can be cancelled")
        }
    }

    private static func exchangeEvent(_ byte: UInt8, _ limits: RetryRule.Limits) -> ExchangeState.Event {
        let flag = byte & 0x80 != 0
        switch byte & 0x1F {
        case 0: return .requestArrived(expectsContinue: flag, leased: byte & 0x40 != 0, limits: limits)
        case 1: return .upstreamReady(reused: flag)
        case 2: return .upstreamFailed(isFinal: flag)
        case 3: return .requestPaused
        case 4: return .requestStalled
        case 5: return .requestResumed
        case 6: return .requestSent
        case 7: return .requestRejected
        case 8: return .requestMalformed
        case 9: return .responseBegan
        case 10: return .head(.interim(isContinue: flag))
        case 11: return .head(.final)
        case 12: return .head(.held)
        case 13: return .head(.unacceptable)
        case 14: return .head(.askAgain(flag ? .redirect : .challenge))
        case 15: return .head(.rest)
        case 16: return .head(.notNow)
        case 17: return .head(.another)
        case 18: return .head(.upgrade(isWanted: flag))
        case 19: return .head(flag ? .malformed : .tooLarge)
        case 20: return .responseMoved(isBlocked: flag)
        case 21: return .responseEnded
        case 22:
            let resumption = ExchangeState.Resumption.possible(progressed: byte & 0x20 != 0)
            return .responseBroke(
                begun: flag, isBlocked: byte & 0x40 != 0, resumption: byte & 0x60 == 0 ? .impossible : resumption)
        case 23: return .judged(isAccepted: flag)
        case 24:
            return .upstreamEnded(
                byte & 0x40 == 0 ? .staleConnection : byte & 0x20 == 0 ? .unprocessed : .ownConnection, resendable: flag
            )
        case 25: return .notShared(resendable: flag)
        case 26: return .downstreamGone
        case 27: return .deadline
        case 28: return .suspend
        case 29: return .resume
        default: return .cancel(isTold: flag)
        }
    }

    static func connection(_ bytes: [UInt8]) {
        var state = ConnectionState()
        // What the client has seen, and what was decided for it.
        var (isAnswered, isVerified, secureTries) = (false, false, 0)
        for byte in bytes {
            let event = connectionEvent(byte)
            let before = state.phase
            let action = state.received(event)
            if before == .closed { require(action == .none && state.phase == .closed, "nothing follows the end") }
            switch action {
            case .answer(let passage):
                require(!isAnswered, "200 is written once")
                isAnswered = true
                isVerified = passage == .tunnel
            case .verify: require(isAnswered && !isVerified, "a tunnel is verified after it was answered")
            case .relay:
                isVerified = isVerified || event == .judged(.verified) || event == .upgraded
                require(isVerified, "nothing is relayed without the verdict that was asked for")
            case .refuse, .decideAnew:
                require(!isAnswered, "nothing is told in the clear after 200")
            case .open(.secure):
                secureTries += 1
                require(secureTries == 1 && isAnswered, "a connection with TLS is asked for once")
            case .pause: require(state.isSuspended, "who is paused is suspended")
            default: break
            }
            if state.phase == .open, before != .open { isAnswered = false }
            _ = (state.isConnecting, state.takesRequests, state.words)
        }
        _ = state.received(.closed)
        require(state.phase == .closed && !state.isSuspended, "a connection can be closed")
    }

    private static func connectionEvent(_ byte: UInt8) -> ConnectionState.Event {
        let (flag, choice) = (byte & 0x80 != 0, Int(byte >> 5 & 3))
        switch byte & 0x0F {
        case 0: return .connect
        case 1: return .connected([.inspected, .refusal, .tunnel, .verifiedTunnel][choice])
        case 2: return .overtaken
        case 3: return .connectFailed([.mayBePlain, .shown, .told, .told][choice])
        case 4: return .answered(isRetired: flag)
        case 5: return .spoke([.request, .handshake(isServed: flag), .refusedHandshake, .other][choice])
        case 6: return .secured(isWhole: flag)
        case 7: return .judged([.verified, .refused, .failed, .failed][choice])
        case 8: return .upgraded
        case 9: return .deadline
        case 10: return .cancel
        case 11: return .suspend
        case 12: return .resume
        default: return flag ? .closed : .connect
        }
    }
}
