/* What the handlers of network calls share. Internal to src/supervise.
 *
 * A call is judged by its copied address (sp_network_judge), denied with that address
 * (sp_network_deny) or told of (sp_network_record).
 */
#ifndef SP_SUPERVISE_NETWORK_H
#define SP_SUPERVISE_NETWORK_H

#include "supervise/address.h"
#include "supervise/record.h"

#ifndef MSG_FASTOPEN
#define MSG_FASTOPEN 0x20000000
#endif
#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

/* The address at `from`; false: the guest's memory cannot be read, or the size makes no
 * sense. */
bool sp_network_read_address(struct sp_act_call *call, uint64_t from, uint64_t size,
                             struct sp_address *ret_address);
/* The answer when it could not be. */
struct sp_answer sp_network_unreadable(struct sp_act_call *call, uint64_t size);

/* Judges one end of a connection. `any` as a destination must have been settled. */
struct sp_verdict sp_network_judge(struct sp_act_call *call,
                                   const struct sp_address *address);

/* Writes a denial, by `verdict` (NULL: by what closes the network as a whole), and refuses with
 * `err`. What libc tries within a name lookup is put down to the lookup. */
struct sp_answer sp_network_deny(struct sp_act_call *call, enum sp_act act,
                                 const char *operation, const char *target,
                                 const struct sp_address *address,
                                 const struct sp_verdict *verdict, int err);

/* Where rules are observed only (observe.h), writes down that they would deny this; true: they
 * would. Unix sockets, whom only an enforced policy keeps account of, are left out. */
bool sp_network_observe(struct sp_act_call *call, enum sp_act act,
                        const char *operation, const struct sp_address *address);
/* The same of the making of a socket of another family. */
bool sp_network_observe_socket(struct sp_act_call *call, const char *target,
                               const struct sp_address *address);

/* Tells of what was let through. `args`: "observed" where another thread can have changed it
 * since; NULL where it is what was done. */
void sp_network_record(struct sp_act_call *call, enum sp_kind kind, enum sp_act act,
                       const char *op, const struct sp_address *address,
                       const char *args);

/* Tells of what was done for the guest, with what came of it. */
void sp_network_record_done(struct sp_act_call *call, enum sp_kind kind,
                            enum sp_act act, const char *op,
                            const struct sp_address *address,
                            const struct sp_answer *answer);

/* Parked calls: tried again; SP_LATER when that was too early. */
struct sp_answer sp_connect_again(struct sp_supervisor *s, struct sp_parked *parked);
struct sp_answer sp_send_again(struct sp_supervisor *s, struct sp_parked *parked);
/* The resolver has something to say. false: it is gone. */
bool sp_resolve_answered(struct sp_supervisor *s);
/* Nobody has answered in time: answers so, and frees the place. */
void sp_resolve_late(struct sp_supervisor *s, struct sp_parked *parked);

#endif
