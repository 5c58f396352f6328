import EventLoop
import Session
import Testing

@Suite struct AddressGuardTests {
    @Test(arguments: [
        ("127.0.0.1", "loopback"), ("127.255.255.255", "loopback"), ("0.0.0.0", "loopback"), ("0.1.2.3", "loopback"),
        ("::1", "loopback"), ("::", "loopback"), ("::ffff:127.0.0.1", "loopback"), ("64:ff9b::7f00:1", "loopback"),
        ("2002:7f00:1::", "loopback"), ("::127.0.0.2", "loopback"),
        ("::169.254.169.254", "link-local metadata"), ("64:ff9b:1::10.1.2.3", "private"),
        ("64:ff9b:1:a9fe:a9:fe00::", "link-local metadata"),
        // Teredo's client 10.0.0.1, inverted.
        ("2001:0:4136:e378:8000:63bf:f5ff:fffe", "private"),
        ("169.254.0.1", "link-local"), ("fe80::1", "link-local"), ("febf::1", "link-local"),
        ("::ffff:169.254.1.1", "link-local"), ("2002:a9fe:101::1", "link-local"),
        ("10.0.0.1", "private"), ("172.16.0.1", "private"), ("172.31.255.255", "private"), ("192.168.1.1", "private"),
        ("fc00::1", "private"), ("fdff::1", "private"), ("::ffff:10.1.2.3", "private"), ("64:ff9b::c0a8:1", "private"),
        ("100.64.0.1", "cgnat"), ("100.127.255.255", "cgnat"), ("::ffff:100.64.0.1", "cgnat"),
        ("224.0.0.1", "multicast"), ("239.255.255.255", "multicast"), ("255.255.255.255", "multicast"),
        ("ff02::1", "multicast"),
        ("169.254.169.254", "link-local metadata"), ("::ffff:169.254.169.254", "link-local metadata"),
        ("64:ff9b::a9fe:a9fe", "link-local metadata"), ("169.254.170.2", "link-local metadata"),
        ("100.100.100.200", "cgnat metadata"), ("168.63.129.16", "metadata"), ("192.0.0.192", "metadata"),
        ("fd00:ec2::254", "metadata private"), ("fd20:ce::254", "metadata private"),
        ("192.0.2.1", ""), ("8.8.8.8", ""), ("172.15.0.1", ""), ("172.32.0.1", ""), ("192.169.0.1", ""),
        ("100.63.255.255", ""), ("100.128.0.1", ""), ("126.0.0.1", ""), ("128.0.0.1", ""), ("223.255.255.255", ""),
        ("2001:db8::1", ""), ("::2", ""), ("64:ff9b::808:808", ""), ("::ffff:8.8.8.8", ""),
    ])
    func `an address is of the classes that it, or what it wraps, is of`(text: String, names: String) throws {
        let address = try #require(IPAddress(text))
        let found = AddressClass.classes(of: address).map(\.rawValue).sorted().joined(separator: " ")
        #expect(found == names)
    }
}
