/* Starting one guest, sealed before its interpreter's first instruction.
 *
 * Theory of operation: the supervisor clones a child that shares its descriptor table. The
 * child, single-threaded, takes a session of its own, its limits, no_new_privs, its Landlock
 * domain, proves that the domain holds, and loads the filter: the listener appears in the
 * shared table, where the supervisor finds it. Then the child takes a table of its own,
 * keeps 0, 1 and 2, and execs; that exec is the first call that the supervisor is asked about.
 * A step that fails is reported through a shared page, with its stage and errno.
 */
#ifndef SP_LAUNCH_LAUNCH_H
#define SP_LAUNCH_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct sp_filter;
struct sp_limits_seal;

/* Each stage of the child, in order; a failure names it. */
enum sp_stage {
    SP_STAGE_START,
    SP_STAGE_SESSION,
    SP_STAGE_PARENT,
    SP_STAGE_LIMITS,
    SP_STAGE_FOLDER,
    SP_STAGE_PRIVILEGES,
    SP_STAGE_LANDLOCK,
    SP_STAGE_SELF_TEST,
    SP_STAGE_FILTER,
    SP_STAGE_DESCRIPTORS,
    SP_STAGE_EXEC,
    SP_STAGE_COUNT
};

struct sp_launch {
    const char *path; /* of the interpreter */
    char *const *argv;
    char *const *envp;
    int folder;         /* to become the current folder; -1: stay */
    unsigned file_mask; /* umask that we were started with */
    int stdio[3];       /* become 0, 1, 2; -1: closed there */
    int terminal;       /* becomes the session's controlling terminal; -1: none */
    int channel;        /* handed in at this number too (no listener), else -1 */
    int ruleset;        /* Landlock ruleset of the guest's domain, -1: none */
    bool scoped;        /* the domain keeps signals inside (self-test by signal) */
    const struct sp_filter *filter;
    const struct sp_limits_seal *limits;
    bool listener;        /* load the filter with a listener */
    const sigset_t *mask; /* signal mask that we were started with */
    bool pipe_ignored;    /* SIGPIPE was ignored when we were started */
    bool child_ignored;   /* SIGCHLD likewise */
    bool size_ignored;    /* SIGXFSZ likewise */
};

/* The descriptor that the channel is handed in at. */
#define SP_CHANNEL_FD 3

struct sp_guest {
    pid_t pid;
    int pidfd;
    int listener; /* -1 when there is none */
    struct sp_launch_report *report;
};

/* The calling process must be single-threaded. On success the guest runs up to its exec. */
int sp_launch(const struct sp_launch *launch, struct sp_guest *ret_guest,
              struct sp_error *reterr) SP_MUST_CHECK;

/* Whether the child reported a failure after sp_launch returned (the exec itself): 0 none,
 * else fills *reterr and returns its code. */
int sp_launch_failed(const struct sp_guest *guest, const struct sp_launch *launch,
                     struct sp_error *reterr);

void sp_guest_release(struct sp_guest *guest);

#endif
