// The system headers that libevent includes belong to the Glibc module: imported first, they aren't taken for ours.
#pragma clang module import SwiftGlibc

#include <event2/event.h>
#include <event2/thread.h>
#include <event2/util.h>
