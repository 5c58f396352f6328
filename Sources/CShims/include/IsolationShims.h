// What the Isolation module needs of <sched.h> and <sys/mount.h>: the first shows it only under _GNU_SOURCE, which the
// Glibc module is built without, and the second is not in that module.
#pragma once

// unshare(2)
int unshare(int flags);
// mount(2)
int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data);
