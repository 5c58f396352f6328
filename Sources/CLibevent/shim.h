// Before libevent's headers, which define _GNU_SOURCE: fd_set must look as it does in the Glibc module.
#include <sys/select.h>

#include <event2/event.h>
#include <event2/thread.h>
#include <event2/util.h>
