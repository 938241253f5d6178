/* Durations as people write them: "10s", "500ms", "1.5m", "2h", or a plain number of
 * seconds. */
#ifndef SP_BASE_DURATION_H
#define SP_BASE_DURATION_H

#include <stdint.h>

#include "base/error.h"

#define SP_DURATION_MAX_NS (366ull * 24 * 3600 * 1000000000ull) /* a year */

/* Reads a whole text into nanoseconds, more than 0 and at most SP_DURATION_MAX_NS. Digits with
 * at most one decimal point, then ns, us, ms, s, m, h or nothing. Fails with SP_E_USAGE and a
 * sentence that quotes the text. */
int sp_duration_parse(const char *text, uint64_t *ret_ns, struct sp_error *reterr)
    SP_MUST_CHECK;

#endif
