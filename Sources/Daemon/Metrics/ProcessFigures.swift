import FoundationEssentials
import Glibc

/// Figures of this process, by the names of Prometheus' client libraries.
struct ProcessFigures {
    /// User and system time.
    var processorSeconds = 0.0
    var residentBytes = 0
    var virtualBytes = 0
    var threads = 0
    var started = 0.0
    var openDescriptors = 0
    var descriptorLimit = 0

    /// Nil: /proc can't be read.
    init?() {
        guard let text = try? String(contentsOfFile: "/proc/self/stat", encoding: .utf8),
            let end = text.lastIndex(of: ")"),
            let uptime = (try? String(contentsOfFile: "/proc/uptime", encoding: .utf8)).flatMap({
                Double($0.split(separator: " ")[0])
            })
        else { return nil }
        // From the third on (proc_pid_stat(5)): the second may hold spaces.
        let fields = text[text.index(after: end)...].split(separator: " ")
        func field(_ number: Int) -> Double {
            fields.indices.contains(number - 3) ? Double(fields[number - 3]) ?? 0 : 0
        }
        let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
        processorSeconds = (field(14) + field(15)) / ticks
        threads = Int(field(20))
        virtualBytes = Int(field(23))
        residentBytes = Int(field(24)) * sysconf(Int32(_SC_PAGESIZE))
        started = Date().timeIntervalSince1970 - uptime + field(22) / ticks
        openDescriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        descriptorLimit = Int(clamping: limit.rlim_cur)
    }
}
