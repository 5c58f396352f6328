// What a process that is ended by a fault may still do. A signal's handler can't be Swift, which may allocate and
// take locks anywhere: of signal-safety(7) it may call next to nothing.
#pragma once

#include <semaphore.h>

// Has each of the signals that end a process by a fault (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS),
// where it isn't ignored, first post `saver` and wait for shim_crash_is_saved(), a second at most. Then it does what it
// did before, and ends the process. `saver` lives as long as the process. To be called once.
void shim_crash_watch(sem_t *saver);

// The signal that ends the process; 0 if there is none. For who waits for `saver`.
int shim_crash_signal(void);

// The handler need not wait any longer.
void shim_crash_is_saved(void);
