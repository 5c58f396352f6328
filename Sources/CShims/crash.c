// Else the headers show less than there is.
#define _GNU_SOURCE

#include "CrashShims.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS};
enum { count = sizeof signals / sizeof signals[0] };

static struct sigaction before[count];
static sem_t *saver;
static atomic_int ending;
static atomic_bool is_saved;

static void handle(int number, siginfo_t *information, void *context) {
    int error = errno;
    int none = 0;
    if (atomic_compare_exchange_strong(&ending, &none, number)) sem_post(saver);
    for (int round = 0; round < 200 && !atomic_load(&is_saved); round++) poll(NULL, 0, 5);
    int index = 0;
    while (signals[index] != number) index++;
    // Who was here before, such as the Swift runtime with its backtraces, may return and expect the fault to come
    // again.
    if (before[index].sa_flags & SA_SIGINFO) {
        before[index].sa_sigaction(number, information, context);
    } else if (before[index].sa_handler != SIG_DFL) {
        before[index].sa_handler(number);
    }
    signal(number, SIG_DFL);
    // It is blocked until this returns: then it ends the process, with the registers as the fault has left them.
    raise(number);
    errno = error;
}

void shim_crash_watch(sem_t *semaphore) {
    saver = semaphore;
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (int index = 0; index < count; index++) {
        if (sigaction(signals[index], NULL, &before[index]) != 0 || before[index].sa_handler == SIG_IGN) continue;
        sigaction(signals[index], &action, NULL);
    }
}

int shim_crash_signal(void) { return atomic_load(&ending); }

void shim_crash_is_saved(void) { atomic_store(&is_saved, true); }
