/// What is wrong with a list, or with the file that should hold one.
struct RevocationListFault: Error {
    let reason: String
}
