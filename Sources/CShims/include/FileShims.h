// Of openat(2), memfd_create(2) and preadv2(2), what the headers show only under _GNU_SOURCE: the Glibc module is built
// without it.
#pragma once

#include <fcntl.h>
#include <sys/uio.h>

static const int shim_O_PATH = 010000000;
static const int shim_AT_EMPTY_PATH = 0x1000;
static const int shim_RWF_NOWAIT = 0x8;
static const unsigned shim_MFD_CLOEXEC = 1;

int memfd_create(const char *name, unsigned flags);
ssize_t preadv2(int file, const struct iovec *places, int count, off_t offset, int flags);
