/* Copying a trace, compressed or not, to a file that is the one or the other. */
#ifndef SP_TRACE_RECODE_H
#define SP_TRACE_RECODE_H

#include <stdbool.h>

/* Whether the trace behind the descriptor is compressed. */
bool sp_recode_is_packed(int from);

/* Writes its text to `to`, which is empty and stays open. The position of `from` stays. 0, or -1
 * with errno, see sp_content_problem(). */
int sp_recode(int from, int to, bool packed);

#endif
