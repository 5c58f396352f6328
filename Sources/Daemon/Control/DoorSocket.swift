/// `door.sock` in the state directory: the listener for what leaves a command's own network (`pinproxy exec --isolated` and
/// `--transparent`).
///
/// The socket identifies these clients. They count as remote (``Arrival/place``), whatever process connects, and reach
/// none of the machine's loopback services. A program in such a network can't choose another way out,
/// nor hide that it came this way.
package enum DoorSocket {
    package static func place(in stateDirectory: String) -> StateSocket { StateSocket("door.sock", in: stateDirectory) }
}
