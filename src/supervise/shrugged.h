/* Programs that libraries start by the way, and do without when they cannot. */
#ifndef SP_SUPERVISE_SHRUGGED_H
#define SP_SUPERVISE_SHRUGGED_H

#include "supervise/record.h"

/* Whether a refusal to start the program is nothing to its caller: what of the stack is a library's
 * word, as all of it, makes it less of an event, not less of a refusal. */
bool sp_exec_shrugged(const struct sp_supervisor *s, const char *program,
                      const struct sp_place *place);

#endif
