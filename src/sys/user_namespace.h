/* A user namespace of its own for the guest, in which it is who it was and may do no more. The
 * kernel counts processes by user and namespace (5.14): a limit on them is the run's alone.
 */
#ifndef SP_SYS_USER_NAMESPACE_H
#define SP_SYS_USER_NAMESPACE_H

#include <stdbool.h>

/* Both lines are made before the fork. */
struct sp_user_namespace {
    char uid_map[32];
    char gid_map[32];
};

void sp_user_namespace_prepare(struct sp_user_namespace *ret_namespace);

/* Enters one, for a process with one thread; async-signal-safe. 0, or a negative errno. */
int sp_user_namespace_enter(const struct sp_user_namespace *space);

/* Tries in a child whether a limit on processes counts those of the namespace, and only them. */
bool sp_user_namespace_counts(void);

#endif
