/// Validates the head alone: AFHTTPResponseSerializer. The value is the body.
public struct HTTPResponseSerializer: ResponseSerializer {
    public var format: String { "any body" }
    /// The accepted statuses; 2xx by default.
    public var acceptableStatuses: [StatusRange]
    public var acceptableContentTypes: [MediaRange]?

    /// - Parameters:
    ///   - acceptableStatuses: 2xx by default.
    ///   - acceptableContentTypes: nil: any, and none.
    public init(acceptableStatuses: [StatusRange] = [.success], acceptableContentTypes: [MediaRange]? = nil) {
        self.acceptableStatuses = acceptableStatuses
        self.acceptableContentTypes = acceptableContentTypes
    }

    public func value(ofBody body: [UInt8]) -> [UInt8]? { body }
}
