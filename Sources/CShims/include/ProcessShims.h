// What the command line needs and Swift's Glibc module leaves out.
#pragma once

// A GNU extension: the headers show it only under _GNU_SOURCE, which the Glibc module is built without.
int memfd_create(const char *name, unsigned int flags);

// MFD_CLOEXEC of linux/memfd.h.
static const unsigned int shim_MFD_CLOEXEC = 1;
