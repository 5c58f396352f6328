/// The keys of the contract that are read and checked, and whose work is still to come. A value other than
/// the default is an error, since nothing would be done about it. Who does the work deletes the line here.
enum UnsupportedKeys {
    static let ofThisVersion: Set<String> = []
}
