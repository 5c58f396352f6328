import Foundation
import Testing

/// The libraries that the program runs with: their versions, and whether they are still those on disk.
@Suite(.timeLimit(.minutes(5)))
struct LibraryTests {
    @Test func theirVersionsAreTold() async throws {
        try await withTestBed { bed in
            let run = try await bed.run([ProxyProcess.executable, "--version"])
            let openssl = try await bed.run(["openssl", "version"]).output.split(separator: " ")[1]
            let lines = run.output.split(separator: "\n")
            #expect(run.succeeded && lines.count == 2 && lines[0].split(separator: " ").count == 2, "\(run)")
            #expect(lines[1].hasPrefix("OpenSSL \(openssl), libevent 2."), "\(run)")
            for library in ["c-ares 1.", "nghttp2 1.", "zlib 1.", "brotli 1.", "zstd 1.", "libxml2 2."] {
                #expect(lines[1].contains(", " + library), "\(run)")
            }
            let proxy = try await ProxyProcess(in: bed, trust: nil, sections: AdminClient.section)
            let metrics = try await AdminClient(proxy).ask("GET", "/metrics").body
            let info = metrics.split(separator: "\n").first { $0.hasPrefix("pinproxy_build_info{") } ?? "none"
            #expect(
                info.contains("version=\"") && info.contains(",openssl=\"\(openssl)\",libevent=\"2.")
                    && info.contains(",c_ares=\"1.") && info.contains(",nghttp2=\"1."), "\(info)")
            #expect(metrics.contains("pinproxy_replaced_libraries 0\n"))
        }
    }

    /// The way dpkg upgrades: a new file is renamed over the old one.
    @Test func oneThatWasReplacedIsTold() async throws {
        try await withTestBed { bed in
            let list = try await bed.run(["ldd", ProxyProcess.executable])
            let libevent = try #require(
                list.output.split(separator: "\n").first { $0.contains("libevent_core") }?.split(separator: " ")[2])
            let copy = try await bed.run([
                "/bin/sh", "-c",
                "mkdir '\(bed.path("lib"))' && cp -L '\(libevent)' '\(bed.path("lib"))' && ls '\(bed.path("lib"))'",
            ])
            let library = bed.path("lib/" + copy.output.trimmingCharacters(in: .whitespacesAndNewlines))
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, sections: AdminClient.section, environment: ["LD_LIBRARY_PATH": bed.path("lib")])
            let tasks = TaskControl(bed: bed, proxy: proxy)
            #expect(try await !tasks.pinproxy("status").output.contains("restart it"))
            #expect(!proxy.events.all.contains { $0.name == "library.replaced" })
            #expect(
                try await bed.run([
                    "/bin/sh", "-c", "cp '\(library)' '\(library).new' && mv '\(library).new' '\(library)'",
                ]).succeeded)
            let status = try await tasks.pinproxy("status")
            #expect(status.output.contains("restart it: replaced on disk since the start: \(library)\n"), "\(status)")
            #expect(
                try await AdminClient(proxy).ask("GET", "/metrics").body.contains("pinproxy_replaced_libraries 1\n"))
            // Checked daily, and after a reload.
            #expect(try await proxy.reload().name == "config.reload")
            let told = try await proxy.events.first("library.replaced")
            #expect(told["libraries"] == library && told["effect"]?.contains("restart") == true, "\(told)")
        }
    }
}
