#include "CShims.h"

#include <linux/capability.h>
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

int shim_keep_capability(int capability) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &header, data) != 0) return -1;
    data[CAP_TO_INDEX(capability)].inheritable |= CAP_TO_MASK(capability);
    if (syscall(SYS_capset, &header, data) != 0) return -1;
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0);
}
