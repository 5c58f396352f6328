/// Judges the head alone: AFHTTPResponseSerializer. The value is the body.
public struct HTTPResponseSerializer: ResponseSerializer {
    public var format: String { "any body" }
    public var acceptableStatuses: [StatusRange]
    public var acceptableContentTypes: [MediaRange]?

    public init(acceptableStatuses: [StatusRange] = [.success], acceptableContentTypes: [MediaRange]? = nil) {
        self.acceptableStatuses = acceptableStatuses
        self.acceptableContentTypes = acceptableContentTypes
    }

    public func value(ofBody body: [UInt8]) -> [UInt8]? { body }
}
