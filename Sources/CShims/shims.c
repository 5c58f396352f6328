#include "CShims.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

void shim_adopt_orphans(void) { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

void shim_end_with_parent(const char *name) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    prctl(PR_SET_NAME, name, 0, 0, 0);
}

int shim_hide_memory(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

int shim_pidfd_open(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }
