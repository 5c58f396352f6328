internal import Glibc

/// Descriptors 0, 1 and 2. A process may be started with some of them closed; the next files that it opens get
/// their numbers, and what is meant for standard error is written into one of them.
enum StandardDescriptors {
    /// Opens those that are closed on /dev/null. To be called before anything else opens a file.
    static func ensureOpen() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 && errno == EBADF {
            // The lowest free number is the one given. Without it there is nobody to tell.
            guard open("/dev/null", O_RDWR) == descriptor else { exit(1) }
        }
    }
}
