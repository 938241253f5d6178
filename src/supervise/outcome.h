/* How a run ended. Internal to src/supervise; what the caller sees of it is in supervise.h. */
#ifndef SP_SUPERVISE_OUTCOME_H
#define SP_SUPERVISE_OUTCOME_H

#include "supervise/supervisor.h"

/* Once nothing of the run is left: what came of it. Takes over what was captured. */
void sp_outcome_fill(struct sp_supervisor *s, struct sp_outcome *ret_outcome);

/* The `end` record, the last of the trace. */
void sp_outcome_write(struct sp_supervisor *s, const struct sp_outcome *o);

#endif
