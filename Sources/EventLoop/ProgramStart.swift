internal import CPinproxyShims
package import Glibc

/// Starts another program by posix_spawn(3), since forking a threaded process is unsafe.
package struct ProgramStart {
    package enum Source {
        case descriptor(CInt)
        case nothing
    }

    package enum Group {
        /// This process's, with the terminal's keys.
        case inherited
        case own
        /// A new session, without a terminal.
        case ownSession
    }

    /// A path, or a name to find in PATH.
    package var file: String
    /// Including the program's name.
    package var arguments: [String]
    /// `NAME=value`; nil: this process's.
    package var environment: [String]?
    /// Set in this order. Others that aren't close-on-exec are inherited.
    package var descriptors: [(number: CInt, source: Source)] = []
    /// The first number to close in any case.
    package var closesFrom: CInt?
    package var directory: String?
    package var group = Group.inherited
    /// Nil: this thread's.
    package var blockedSignals: sigset_t?
    /// Whether ignored signals get their default action.
    package var restoresSignals = false

    package init(_ file: String, _ arguments: [String], environment: [String]? = nil) {
        self.file = file
        self.arguments = arguments
        self.environment = environment
    }

    /// - Returns: the process, which the caller must wait for.
    package func start() throws(SystemError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (number, source) in descriptors {
            switch source {
            case .descriptor(let descriptor): posix_spawn_file_actions_adddup2(&actions, descriptor, number)
            case .nothing: posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_RDWR, 0)
            }
        }
        if let closesFrom { posix_spawn_file_actions_addclosefrom_np(&actions, closesFrom) }
        if let directory { posix_spawn_file_actions_addchdir_np(&actions, directory) }

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var flags: CInt = 0
        if restoresSignals {
            var all = sigset_t()
            sigfillset(&all)
            posix_spawnattr_setsigdefault(&attributes, &all)
            flags |= CInt(POSIX_SPAWN_SETSIGDEF)
        }
        if var blockedSignals {
            posix_spawnattr_setsigmask(&attributes, &blockedSignals)
            flags |= CInt(POSIX_SPAWN_SETSIGMASK)
        }
        switch group {
        case .inherited: break
        case .own: flags |= CInt(POSIX_SPAWN_SETPGROUP)
        // POSIX_SPAWN_SETSID of <spawn.h>
        case .ownSession: flags |= 0x80
        }
        posix_spawnattr_setflags(&attributes, Int16(flags))

        let words = arguments.map { strdup($0) } + [nil]
        let variables = environment.map { $0.map { strdup($0) } + [nil] }
        defer { for pointer in words + (variables ?? []) { free(pointer) } }
        var process: pid_t = 0
        let code =
            if let variables {
                posix_spawnp(&process, file, &actions, &attributes, words, variables)
            } else {
                posix_spawnp(&process, file, &actions, &attributes, words, environ)
            }
        guard code == 0 else { throw SystemError(code: code, call: "posix_spawn") }
        return process
    }
}

extension sigset_t {
    package static var empty: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        return set
    }
}
