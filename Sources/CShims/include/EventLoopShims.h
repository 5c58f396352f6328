// What the EventLoop room needs and Swift's Glibc module leaves out.
#pragma once

#include <sys/eventfd.h>
#include <sys/socket.h>

// A GNU extension: the headers show it only under _GNU_SOURCE, which the Glibc module is built without.
int accept4(int socket, struct sockaddr *restrict address, socklen_t *restrict length, int flags);
