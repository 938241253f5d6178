/* Name lookups inside libc: however many servers it tries, one lookup is one act.
 *
 * The stub marks a lookup's begin and end; the network acts that are denied to that thread in
 * between belong to it. At the end they are one `resolve` violation, or, when a local file
 * answered, one expected refusal.
 */
#ifndef SP_SUPERVISE_LOOKUPS_H
#define SP_SUPERVISE_LOOKUPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/policy.h"

#define SP_LOOKUPS_MAX 64u

struct sp_lookup {
    pid_t tid; /* 0: free */
    pid_t pid;
    int port;
    bool tried;  /* an address was */
    bool judged; /* by `verdict`: of what was refused first */
    struct sp_verdict verdict;
    char address[64];
};

struct sp_lookups {
    struct sp_lookup items[SP_LOOKUPS_MAX];
};

/* The lookup that a thread is in; begins one when it has none. NULL: too many at once. */
struct sp_lookup *sp_lookups_note(struct sp_lookups *lookups, pid_t pid, pid_t tid);
/* The one it is in, NULL: none. */
struct sp_lookup *sp_lookups_find(struct sp_lookups *lookups, pid_t tid);
static inline void sp_lookup_end(struct sp_lookup *lookup)
{
    lookup->tid = 0;
}

#endif
