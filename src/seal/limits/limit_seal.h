/* The limits that the kernel keeps for the guest: worked out before the fork, applied in the
 * child.
 */
#ifndef SP_SEAL_LIMITS_LIMIT_SEAL_H
#define SP_SEAL_LIMITS_LIMIT_SEAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "sys/user_namespace.h"

#define SP_RLIMITS_MAX 8u
#define SP_GROUPS_MAX  2u

struct sp_limits_seal {
    struct {
        int resource;
        struct rlimit value;
    } rlimits[SP_RLIMITS_MAX];
    unsigned rlimits_count;
    bool own_namespace;
    struct sp_user_namespace space;
    int tasks
        [SP_GROUPS_MAX]; /* of control groups, version 1, to be entered; -1: none */
    int group;           /* of version 2, to be started in; -1: none */
};

#define SP_LIMITS_SEAL_NONE ((struct sp_limits_seal){.tasks = {-1, -1}, .group = -1})

/* Sets both, the soft and the hard one; no process of the guest can raise them. */
void sp_limits_seal_add(struct sp_limits_seal *seal, int resource, uint64_t soft,
                        uint64_t hard);

/* In the child, async-signal-safe; 0, or a negative errno. Groups and namespace come first, while
 * it is still ours; the rest last, since it would bind our own preparations too. `grouped`: it was
 * born in its group of version 2. */
int sp_limits_enter(const struct sp_limits_seal *seal, bool grouped);
int sp_limits_apply(const struct sp_limits_seal *seal);

#endif
