/* The keeper: the process that the caller started. It waits, and outlives the supervisor.
 *
 * Theory of operation: the keeper forks the supervisor and holds the trace's file too. When the
 * supervisor dies before it has finished, the guest's processes re-parent to the keeper, which
 * kills them all and gives the file its name: valid up to its last checkpoint, without an
 * end. When the keeper dies, the supervisor gets SIGTERM and ends the run.
 */
#ifndef SP_RUN_KEEPER_H
#define SP_RUN_KEEPER_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct sp_trace_file;

/* The signals that end a run from outside, and the one that says that the window has changed
 * its size; blocked in keeper and supervisor. */
void sp_keeper_signals(sigset_t *ret_set);

/* Forks. In the supervisor returns 0; in the keeper the supervisor's pid. `finished` is a
 * shared word that the supervisor sets when nothing is left to do for it. -1: errno. */
pid_t sp_keeper_fork(int **ret_finished);

/* In the keeper: waits for the supervisor and returns its exit code, 125 after cleaning up
 * behind one that died. *ret_died tells which. `file` may be NULL. */
int sp_keeper_wait(pid_t supervisor, const int *finished, struct sp_trace_file *file,
                   bool *ret_died);

#endif
