/* The Landlock domains of a run.
 *
 * Theory of operation
 * -------------------
 * Two domains, one inside the other. The supervisor enters D1 before it makes the
 * guest; the guest inherits D1 and enters D2, which guards writes too. A process may look into those of its own
 * or an inner domain only: so the supervisor reads the guest's memory, and the guest
 * reads nobody's.
 *
 *   compile  pure: features -> struct sp_landlock, masked by the kernel's ABI
 *   build    makes the ruleset's descriptor; in the supervisor, before the guest exists
 *   enter    restricts the caller; in the supervisor (D1), then in the child (D2)
 *
 * From ABI 6 the scopes (signals, abstract Unix sockets) are what the domains are for.
 * Below, the domains exist only to separate processes: some right on files has to be
 * handled, and we take the making of device nodes, which nobody has the capability for.
 * A domain that handles any right on files also forbids to move files between folders
 * unless it grants that; ABI 1 has no such grant: there the supervisor moves them.
 */
#ifndef SP_SEAL_LANDLOCK_RULESET_H
#define SP_SEAL_LANDLOCK_RULESET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct sp_landlock_features {
    int abi; /* of the kernel (sys/host.h); 0 or less: it has no Landlock */
    bool
        network_denied; /* no TCP bind or connect (ABI 4), no abstract Unix socket outside (6) */
    bool writes_guarded;   /* files are written only where sp_landlock_grant() says */
    bool writes_judged;    /* ... and made, removed and moved */
    bool reads_judged;     /* ... and read */
    bool programs_guarded; /* ... and executed */
};

/* Room for what a policy grants by name. */
#define SP_LANDLOCK_PATHS_MAX 512u

struct sp_landlock_path {
    const char *path; /* borrowed from the plan */
    uint64_t access;  /* SP_FS_*, a part of handled_fs */
};

struct sp_landlock {
    int abi;
    uint64_t handled_fs;
    uint64_t handled_net; /* nothing is granted of it */
    uint64_t scoped;
    unsigned paths_count;
    struct sp_landlock_path paths[SP_LANDLOCK_PATHS_MAX];
};

/* Below ABI 1 the result is empty: nothing to build. */
void sp_landlock_compile(const struct sp_landlock_features *features,
                         struct sp_landlock *ret_landlock);

/* Grants rights below a path. Rights that are not handled, or not by this ABI, are left
 * out, and a grant of nothing is no rule. SP_E_POLICY when there are too many. */
int sp_landlock_grant(struct sp_landlock *landlock, const char *path, uint64_t access,
                      struct sp_error *reterr) SP_MUST_CHECK;

/* Whether signals and abstract Unix sockets are kept inside. */
bool sp_landlock_scoped(const struct sp_landlock *landlock);

/* Whether there is anything to build. */
bool sp_landlock_empty(const struct sp_landlock *landlock);

/* The ruleset's descriptor, close-on-exec, the caller's to close. SP_E_HOST
 * ("landlock") when the kernel has no Landlock or refuses. A granted path that does not
 * exist is skipped: there is nothing to reach; any other failure of one is an error. */
int sp_landlock_build(const struct sp_landlock *landlock, int *ret_fd,
                      struct sp_error *reterr) SP_MUST_CHECK;

/* Restricts the calling thread and what it will start, for good. The caller has set
 * no_new_privs. Async-signal-safe. 0, or a negative errno: E2BIG when 16 domains are
 * nested already. */
int sp_landlock_enter(int ruleset) SP_MUST_CHECK;

/* For the child, inside D2: proves that it cannot reach the supervisor. That proves the
 * domain, as long as nothing else is in the way: the supervisor has the same user and
 * no more capabilities than the child, and is dumpable still. `scoped`: as
 * sp_landlock_scoped(). Async-signal-safe. 0, or -1 when the supervisor can be reached:
 * the child must not go on. */
int sp_landlock_self_test(pid_t supervisor, bool scoped) SP_MUST_CHECK;

#endif
