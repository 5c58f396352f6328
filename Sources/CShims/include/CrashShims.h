// What a crashing process may still do. A signal handler can't be written in Swift, which may allocate and take locks
// anywhere: signal-safety(7) allows hardly any calls.
#pragma once

#include <semaphore.h>

// Installs a handler for the signals of a crash (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS) that aren't
// ignored. It posts `saver` and waits for shim_crash_is_saved(), a second at most. Then the signal takes its previous
// action, and ends the process. `saver` lives as long as the process. Call it once.
void shim_crash_watch(sem_t *saver);

// The fatal signal, for the thread that waits for `saver`; 0: no crash.
int shim_crash_signal(void);

// Ends the handler's wait.
void shim_crash_is_saved(void);
