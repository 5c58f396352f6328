// The system headers included here belong to the Glibc module: imported first, they are not taken for ours.
#pragma clang module import SwiftGlibc

#if !__has_include(<systemd/sd-daemon.h>)
#error "systemd/sd-daemon.h is missing (Debian package libsystemd-dev)"
#endif

#include <dlfcn.h>
#include <stdbool.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>

// The shared object that these headers describe: loaded by a service. With it come five others, and most commands need
// none of them.
#define SHIM_SYSTEMD_FILE "libsystemd.so.0"

// The functions used, with the headers' types.
struct shim_systemd {
    __typeof__(sd_notify) *notify;
    __typeof__(sd_pid_notify_with_fds) *pidNotifyWithFDs;
    __typeof__(sd_watchdog_enabled) *watchdogEnabled;
    __typeof__(sd_listen_fds) *listenFDs;
    __typeof__(sd_listen_fds_with_names) *listenFDsWithNames;
    __typeof__(sd_is_socket_unix) *isSocketUnix;
    __typeof__(sd_is_socket_inet) *isSocketInet;
    __typeof__(sd_journal_sendv) *journalSendv;
};

#define SHIM_SYSTEMD_LOAD(field, name) \
    (functions->field = (__typeof__(functions->field))dlsym(library, name)) != NULL

// False if the library has not all of them.
static inline bool shim_systemd_load(void *library, struct shim_systemd *functions) {
    return SHIM_SYSTEMD_LOAD(notify, "sd_notify")
        && SHIM_SYSTEMD_LOAD(pidNotifyWithFDs, "sd_pid_notify_with_fds")
        && SHIM_SYSTEMD_LOAD(watchdogEnabled, "sd_watchdog_enabled")
        && SHIM_SYSTEMD_LOAD(listenFDs, "sd_listen_fds")
        && SHIM_SYSTEMD_LOAD(listenFDsWithNames, "sd_listen_fds_with_names")
        && SHIM_SYSTEMD_LOAD(isSocketUnix, "sd_is_socket_unix")
        && SHIM_SYSTEMD_LOAD(isSocketInet, "sd_is_socket_inet")
        && SHIM_SYSTEMD_LOAD(journalSendv, "sd_journal_sendv");
}
