// What the EventLoop module needs and Swift's Glibc module leaves out.
#pragma once

// Swift reads this as a module: then the system headers belong to the Glibc module, and aren't taken for ours.
// shims.c is plain C.
#if __has_feature(modules)
#pragma clang module import SwiftGlibc
#endif

#include <pthread.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

// A GNU extension: the headers show it only under _GNU_SOURCE, which the Glibc module is built without.
int accept4(int socket, struct sockaddr *restrict address, socklen_t *restrict length, int flags);

// GNU extensions too, with two constants of fcntl(2) and splice(2).
int pipe2(int ends[2], int flags);
ssize_t splice(int from, int64_t *from_offset, int to, int64_t *to_offset, size_t count, unsigned int flags);
static const int shim_F_SETPIPE_SZ = 1031;
static const unsigned int shim_SPLICE_MOVE_NONBLOCK = 1 | 2;

// struct ucred of unix(7), as SO_PEERCRED fills it; another GNU extension.
struct shim_ucred {
    pid_t process;
    uid_t user;
    gid_t group;
};

// malloc_trim(3), from <malloc.h>.
int malloc_trim(size_t pad);

// pthread_setname_np(3), also a GNU extension.
int pthread_setname_np(pthread_t thread, const char *name);

// sem_timedwait(3) with a choice of clock.
int sem_clockwait(sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict end);

// Fills a set of processors, one bit each (sched_getaffinity(2)).
int sched_getaffinity(pid_t process, size_t size, void *set);
