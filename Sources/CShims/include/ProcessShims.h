// Wrappers for prctl(2), which is variadic, and for pidfd_open(2) and capset(2), missing from Swift's Glibc module.
// Also the parts of <spawn.h> that need _GNU_SOURCE.
#pragma once

#include <spawn.h>

// PR_SET_CHILD_SUBREAPER
void shim_adopt_orphans(void);

// PR_SET_PDEATHSIG: the process is ended (SIGKILL) with the thread that started it. PR_SET_NAME: as ps shows it.
void shim_end_with_parent(const char *name);

// PR_SET_DUMPABLE: no core file, and no other process of the same user may look into this one. 0, or -1 with errno.
int shim_hide_memory(void);

// A descriptor that is readable once the process has ended; -1 with errno.
int shim_pidfd_open(pid_t process);

// PR_CAP_AMBIENT: a capability that the programs executed by this process keep (capabilities(7)). 0, or -1 with errno.
int shim_keep_capability(int capability);

int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *restrict actions, const char *restrict path);
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);
