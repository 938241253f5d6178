/* Takes what looks like a secret out of a line of a trace.
 *
 * Everywhere: what sp_secret_at knows by its shape. In lists of arguments, also the value behind a
 * name that says so: `--password=X`, `--token X`, `API_KEY=X`. Paths and other texts keep what stands
 * behind such names: a guest could hide there what it does.
 */
#ifndef SP_TRACE_REDACT_H
#define SP_TRACE_REDACT_H

#include <stddef.h>

/* In place: each becomes "***", its prefix stays. `json` is any JSON without line ends in it; it may
 * get shorter. How many there were. */
unsigned sp_redact(char *json, size_t *size);

#endif
