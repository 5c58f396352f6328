import Testing

@testable import PinproxySecurity

@Suite struct AmountsTests {
    @Test(
        arguments: [
            (0, "less than a minute ago"), (-1, "less than a minute ago"), (59, "in less than a minute"),
            (60, "in 1 minute"),
            (3599, "in 59 minutes"), (3600, "in 1 hour"), (-5 * 3600, "5 hours ago"), (86_399, "in 23 hours"),
            (86_400, "in 1 day"), (-86_400 - 360, "1 day ago"), (-2 * 86_400, "2 days ago"),
            (30 * 86_400, "in 30 days"),
        ] as [(Int64, String)]) func aDistanceIsNeverRoundedUp(seconds: Int64, text: String)
    {
        #expect("\(TimeDistance(from: 1_900_000_000, to: 1_900_000_000 + seconds))" == text)
    }

    @Test func whatCannotBeToldApartDoesNotTrap() {
        #expect(TimeDistance(from: .max, to: .min).isPast)
        #expect(!TimeDistance(from: .min, to: .max).isPast)
    }

    @Test func oneIsNotMany() {
        #expect("\(Count(1, "connection"))" == "1 connection")
        #expect("\(Count(0, "connection"))" == "0 connections")
        #expect(
            "\(Count(1, "match", plural: "matches")), \(Count(2, "match", plural: "matches"))" == "1 match, 2 matches")
    }
}
