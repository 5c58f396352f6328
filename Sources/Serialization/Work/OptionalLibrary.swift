internal import Glibc

/// A library that is loaded at its first use.
package enum OptionalLibrary {
    /// - Parameters:
    ///   - file: the name of the shared object.
    ///   - none: what `load` fills in.
    ///   - load: looks up the functions; false if one is missing.
    /// - Returns: the functions of a library; nil if it isn't installed.
    package static func load<Functions>(
        _ file: String, _ none: Functions, _ load: (UnsafeMutableRawPointer?, UnsafeMutablePointer<Functions>?) -> Bool
    ) -> Functions? {
        var functions = none
        guard let handle = dlopen(file, RTLD_NOW | RTLD_LOCAL), load(handle, &functions) else { return nil }
        return functions
    }
}
