// The system headers included here belong to the Glibc module: imported first, they are not taken for ours.
#pragma clang module import SwiftGlibc

#include <errno.h>
#include <seccomp.h>

// A macro with an argument.
static const unsigned int shim_SCMP_ACT_NO_SUCH_FILE = SCMP_ACT_ERRNO(ENOENT);
