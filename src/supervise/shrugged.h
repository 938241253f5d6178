/* What libraries try by the way, and do without when they cannot. */
#ifndef SP_SUPERVISE_SHRUGGED_H
#define SP_SUPERVISE_SHRUGGED_H

#include "supervise/record.h"

/* Whether a refusal is nothing to who asked. `target` is the program of an "exec", the address of a
 * "bind". Who asked is the guest's word: it makes a refusal less of an event, not less of a
 * refusal. */
bool sp_shrugged(const struct sp_supervisor *s, const char *operation,
                 const char *target, const struct sp_place *place);

#endif
