import Testing

@testable import PinproxyLocalPeers

@Suite struct ControlGroupTests {
    @Test(
        arguments: [
            ("0::/system.slice/ci.service\n", "ci.service"),
            ("0::/system.slice/system-getty.slice/getty@tty1.service\n", "getty@tty1.service"),
            ("0::/user.slice/user-1000.slice/session-3.scope\n", "session-3.scope"),
            // A user's manager can't give its services the name of a system service.
            ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/ci.service\n", "user@1000.service"),
            ("0::/system.slice/ci.service/payload/ci2.service\n", "ci.service"),
            ("0::/system.slice/_cgroup.service\n", "cgroup.service"),
            ("12:pids:/user.slice\n1:name=systemd:/system.slice/ci.service\n0::/\n", "ci.service"),
            ("0::/init.scope\n", "init.scope"),
        ] as [(String, String)]) func namesTheUnit(_ text: String, _ unit: String)
    {
        #expect(ControlGroup.unit(in: text) == unit)
    }

    @Test(arguments: [
        "", "\n", "0::/\n", "0::\n", "0:", "0::/system.slice\n", "0::/system.slice/.service\n", "0::/docker/abc\n",
        "0::/../../system.slice/ci.service\n",
        "0::system.slice/ci.service\n", "3:cpu:/system.slice/ci.service\n", "0::/system.slice/_\n",
    ]) func namesNoneWhereThereIsNone(_ text: String) {
        #expect(ControlGroup.unit(in: text) == nil)
    }

    @Test func readsTheTimeOfAStart() {
        let stat = "77 (a (b) 1 2) S 1 77 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 9 10\n"
        #expect(Lineage.birth(stat)?.started == 123456)
        for length in 0..<60 { #expect(Lineage.birth(String(stat.prefix(length))) == nil, "\(length)") }
    }
}
