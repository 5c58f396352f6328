import Testing

@testable import PinproxyIsolation

@Suite struct NamespaceRefusalTests {
    @Test(arguments: [
        ("kernel/unprivileged_userns_clone", 0, "kernel.unprivileged_userns_clone is 0: set it to 1"),
        ("user/max_user_namespaces", 0, "user.max_user_namespaces is 0: raise it"),
        ("user/max_net_namespaces", 0, "user.max_net_namespaces is 0: raise it"),
        ("user/max_mnt_namespaces", 0, "user.max_mnt_namespaces is 0: raise it"),
        (
            "kernel/apparmor_restrict_unprivileged_userns", 1,
            "kernel.apparmor_restrict_unprivileged_userns is 1: set it to 0"
        ),
    ])
    func theSettingIsNamed(file: String, value: Int, words: String) throws {
        let hint = try #require(NamespaceRefusal.hint { $0 == file ? value : nil })
        #expect(hint.hasPrefix(words) && hint.hasSuffix(", or run this as root"), "\(hint)")
        #expect(NamespaceRefusal.hint { $0 == file ? 1 - value : nil } == nil)
    }

    @Test func withoutASettingTheErrorIsTold() {
        func words(_ code: Int32) -> String { NamespaceRefusal.error(code, of: .user) { _ in nil }.description }
        #expect(words(1).contains("Operation not permitted; a container or a seccomp filter may forbid it"))
        #expect(words(28).contains("as many as user.max_user_namespaces lets there be"))
        #expect(words(22).contains("Invalid argument; it was built without them"))
    }
}
