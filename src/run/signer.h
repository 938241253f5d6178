/* The key that a run's trace is signed with: how it lies in memory, and where its file is, which no
 * guest may read.
 *
 * Theory of operation: the keeper reads it before anything else exists of the run, into a page of
 * its own that is never swapped or dumped. The supervisor, forked from it, claims its copy: the
 * page is locked again (locks do not pass through a fork) and comes empty into whatever the
 * supervisor forks, the guest above all. The keeper wipes its own at once, the supervisor when
 * the trace is signed.
 */
#ifndef SP_RUN_SIGNER_H
#define SP_RUN_SIGNER_H

#include <limits.h>

#include "base/error.h"
#include "trace/key_file.h"

struct sp_signer_page;

struct sp_signer {
    struct sp_signer_page *page; /* NULL: there is no key (any more) */
    struct sp_key_place place;
    char path[PATH_MAX]; /* canonical */
};

/* Reads the key. SP_E_USAGE when it is none; SP_E_HOST when no page can be locked. */
int sp_signer_open(const char *path, struct sp_signer *ret_signer,
                   struct sp_error *reterr) SP_MUST_CHECK;

/* In the supervisor, before it forks. */
int sp_signer_claim(const struct sp_signer *signer, struct sp_error *reterr)
    SP_MUST_CHECK;

/* NULL when there is none. */
const struct sp_signing_key *sp_signer_key(const struct sp_signer *signer);

/* Wipes it in this process. */
void sp_signer_wipe(struct sp_signer *signer);

#endif
