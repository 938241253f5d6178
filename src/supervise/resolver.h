/* The resolver: a child of ours that looks names up, so that the guest needs to reach no name
 * server and the supervisor waits for none.
 *
 * It is started before the guest, where the policy has rules about names, and lives in the
 * supervisor's domain, not in the guest's. What it says comes from the network: it is checked
 * like anything else from there.
 */
#ifndef SP_SUPERVISE_RESOLVER_H
#define SP_SUPERVISE_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "ring/names.h"

struct sp_resolver {
    pid_t pid; /* 0: none */
    int socket;
};

/* Starts the program at `path`. */
int sp_resolver_start(struct sp_resolver *resolver, const char *path,
                      struct sp_error *reterr) SP_MUST_CHECK;

/* Passes a question on. false: it is overwhelmed, or dead. */
bool sp_resolver_ask(struct sp_resolver *resolver, uint32_t serial,
                     const struct sp_name_question *question);

/* Takes one answer. 1, 0 when there is none (yet), -1 when the resolver is gone. */
int sp_resolver_take(struct sp_resolver *resolver,
                     struct sp_resolver_answer *ret_answer);

void sp_resolver_release(struct sp_resolver *resolver);

#endif
