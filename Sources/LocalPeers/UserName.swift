internal import Glibc

/// The user database (getpwuid(3)). A directory service may answer slowly: not for workers.
package enum UserName {
    /// Nil: the user has no name.
    package static func of(_ user: UInt32) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { room in
            var entry = passwd()
            var found: UnsafeMutablePointer<passwd>?
            guard let base = room.baseAddress, getpwuid_r(user, &entry, base, room.count, &found) == 0 else {
                return nil
            }
            return found?.pointee.pw_name.map { String(cString: $0) }
        }
    }
}
