import PinproxyEventLoop
import Testing

@testable import PinproxyClients

@Suite struct FairShareTests {
    // MARK: Places

    @Test func nobodyGetsMoreThanAShare() {
        var share = FairShare<Int>(places: 8)
        #expect(share.share == 2)
        for _ in 0..<2 { #expect(share.enter(1) == nil) }
        #expect(share.enter(1) == .share(2))
        for holder in 2...4 { for _ in 0..<2 { #expect(share.enter(holder) == nil) } }
        #expect(share.enter(5) == .places(8) && share.count == 8)
        share.leave(3)
        #expect(share.enter(1) == .share(2) && share.enter(5) == nil)
        // Of no holder: it changes nothing.
        share.leave(99)
        #expect(share.count == 8)
        for holder in [1, 1, 2, 2, 3, 4, 4, 5] { share.leave(holder) }
        #expect(share.count == 0 && share.taken(by: 1) == 0)
        share.leave(1)
        #expect(share.count == 0 && share.enter(1) == nil)
    }

    @Test func oneMoreDisplacesOnesOwnOrWhoeverHasMost() {
        var share = FairShare<Int>(places: 4, share: 3)
        for holder in [1, 1, 2] { _ = share.enter(holder) }
        #expect(share.displaced(by: 1) == nil && share.displaced(by: 3) == nil)
        _ = share.enter(1)
        #expect(share.displaced(by: 1) == 1 && share.displaced(by: 2) == 1 && share.displaced(by: 3) == 1)
    }

    // MARK: Turns

    @Test func holdersTakeTurns() {
        var queue = FairQueue<Int, String>(places: 16)
        for element in ["a", "b", "c", "d"] { #expect(queue.add(element, of: 1) == nil) }
        #expect(queue.add("e", of: 1) == .share(4))
        #expect(queue.add("x", of: 2) == nil && queue.add("y", of: 2) == nil && queue.add("z", of: 3) == nil)
        var order = ""
        while let next = queue.next() {
            order += next.element
            // While it is served, it keeps its place.
            #expect(queue.count == 8 - order.count)
            queue.served(next.holder)
        }
        #expect(order == "axzbycd" && queue.count == 0 && queue.next() == nil)
        #expect(queue.add("f", of: 1) == nil && queue.next()?.element == "f")
    }

    @Test func aPlaceIsHeldUntilItIsServed() {
        var queue = FairQueue<Int, Int>(places: 4, share: 1)
        #expect(queue.add(1, of: 1) == nil && queue.next() != nil)
        #expect(queue.add(2, of: 1) == .share(1))
        queue.served(1)
        #expect(queue.add(2, of: 1) == nil)
    }

    // MARK: Connections

    private final class Member {
        let name: String
        var isBusy = false
        init(_ name: String) { self.name = name }
    }

    @Test func whoComesOnTopDisplacesItsOwnOldest() {
        var roster = FairRoster<Int, Member>(places: 4, share: 2)
        func add(_ name: String, _ holder: Int, isBusy: Bool = false) -> String? {
            let member = Member(name)
            member.isBusy = isBusy
            return roster.add(member, of: holder, sparing: \.isBusy)?.name
        }
        #expect(add("a1", 1, isBusy: true) == nil && add("a2", 1) == nil && add("b1", 2) == nil)
        #expect(add("a3", 1) == "a2")
        #expect(add("a4", 1, isBusy: true) == "a3")
        // All other members of that holder are busy.
        #expect(add("a5", 1) == "a1")
        #expect(add("b2", 2) == nil)
        // All places are taken: two by each, or most by one holder.
        #expect(["a5", "b1"].contains(add("c1", 3)))
        #expect(roster.members.count == 4)
        for member in roster.members { roster.remove(member) }
        #expect(roster.isEmpty && add("a6", 1) == nil)
        let stranger = Member("stranger")
        roster.remove(stranger)
        #expect(!roster.contains(stranger) && roster.members.count == 1)
    }

    // MARK: Claimants

    @Test func aUserOrANetworkClaims() throws {
        func claimant(_ text: String, user: UInt32? = nil) throws -> Claimant {
            Claimant(user: user, source: .network(SocketAddress(ip: try #require(IPAddress(text)), port: 1)))
        }
        #expect(try claimant("127.0.0.1", user: 7) == .user(7))
        #expect(try claimant("192.0.2.1") == claimant("::ffff:192.0.2.1"))
        #expect(try claimant("192.0.2.1") != claimant("192.0.2.2"))
        #expect(try claimant("2001:db8:1:2::3") == claimant("2001:db8:1:2:ffff::"))
        #expect(try claimant("2001:db8:1:2::3") != claimant("2001:db8:1:3::3"))
        #expect(
            try "\(claimant("2001:db8:1:2::3")), \(claimant("192.0.2.1")), \(claimant("::1", user: 0))"
                == "2001:db8:1:2::/64, 192.0.2.1, user 0")
        #expect(Claimant(user: nil, source: .unix("/x")) == .unknown)
    }
}
