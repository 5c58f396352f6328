internal import PinproxyBundles

extension DaemonFileReader {
    /// Nil: this machine has only its own pin file.
    func policy(_ root: Section) -> PolicySettings? {
        guard let written = root.nonNull("policy") else { return nil }
        let section = root.section("policy")
        defer { section.finish() }
        let bundle = section.read("bundle", .bundle)
        let keys = section.list("keys").map { $0.compactMap { section.scalar($0, "keys", .bundleKey) } }
        let threshold = section.read("threshold", .integer(1...RoleKeys.limit)) ?? 1
        let interval: Duration = section.read("interval", .duration(.seconds(10)...(.days(1)))) ?? .seconds(300)
        let groups = section.list("groups").map { $0.compactMap { section.scalar($0, "groups", .machineGroup) } } ?? []
        let onExpiry: PolicySettings.OnExpiry = section.read("on_expiry", .anyCase) ?? .keep
        for key in ["bundle", "keys"] where section.value(key) == nil {
            section.error(written, "policy: \"\(key)\" is missing")
        }
        guard let bundle, let keys, !keys.isEmpty else {
            if let value = section.value("keys"), keys?.isEmpty == true, section.list("keys")?.isEmpty == true {
                section.error(value, "keys: the list is empty; without a key nothing can be verified")
            }
            return nil
        }
        do throws(RoleKeysProblem) {
            _ = try RoleKeys(keys, threshold: threshold)
        } catch {
            section.error(section.value("threshold") ?? section.value("keys") ?? written, "keys: \(error)")
            return nil
        }
        return PolicySettings(
            bundle: bundle, keys: keys, threshold: threshold, interval: interval, groups: groups, onExpiry: onExpiry)
    }
}

extension Form where Value == BundleKey {
    fileprivate static var bundleKey: Form {
        Form { text in
            do throws(BundleKeyError) { return .success(try BundleKey(text)) } catch {
                return .failure(Reason("\(error)"))
            }
        }
    }
}

extension Form where Value == String {
    fileprivate static var machineGroup: Form {
        Form { text in
            PolicyBundle.isGroup(text)
                ? .success(text)
                : .failure(
                    Reason(
                        "\"\(text)\" is not the name of a group: letters, digits, \".\", \"_\" and \"-\", at most 64"))
        }
    }
}
