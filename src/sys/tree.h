/* Ending a tree of processes: every descendant of ours, whatever session it hides in. */
#ifndef SP_SYS_TREE_H
#define SP_SYS_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Stops, then kills every descendant of the calling process, which must be a sub-reaper, and
 * reaps its children, until none is left or `deadline_ns` (sp_clock_ns) passes. on_reaped (may
 * be NULL) is told of each child reaped. Returns whether none is left. */
struct rusage;
typedef void sp_on_reaped(void *context, pid_t pid, int status,
                          const struct rusage *usage);
bool sp_tree_kill(uint64_t deadline_ns, sp_on_reaped *on_reaped, void *context);

/* Whether `pid` is a descendant of the calling process, and not the one left out nor below it. */
bool sp_tree_contains(pid_t pid);

/* A child of the caller's that is no part of the run; the last one counts. It is killed with the
 * rest all the same. */
void sp_tree_leave_out(pid_t pid);

/* The thread of `parent` that made its child `child`; 0 when it is gone, or not among the first
 * few hundred. */
pid_t sp_tree_maker(pid_t parent, pid_t child);

/* How the process behind a pidfd ended, where the kernel tells (6.15); *ret_code stays as it is
 * when it does not. Either an exit code or a signal is filled in. */
void sp_pidfd_exit_status(int pidfd, int *ret_code, int *ret_signal);

#endif
