/// What `POST /reload` answers.
package struct ReloadReport: Codable, Sendable, Equatable {
    package let process: Int32
    /// The file that was read, as an absolute path.
    package let configuration: String
    /// Why the old configuration is still in force, one problem a line; nil if the new one is.
    package let cause: String?
}
