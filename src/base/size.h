/* Sizes as people write them: "64MiB", "512M", "1.5GiB", "10kB", or a plain number of bytes. */
#ifndef SP_BASE_SIZE_H
#define SP_BASE_SIZE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SP_SIZE_MAX_BYTES (UINT64_C(1) << 60)

/* Reads a whole text into bytes, more than 0 and at most SP_SIZE_MAX_BYTES. Digits with at most
 * one decimal point, then nothing or B; K, M, G, T, also with iB, in steps of 1024; kB, MB, GB, TB
 * in steps of 1000. Fails with SP_E_USAGE and a sentence that quotes the text. */
int sp_size_parse(const char *text, uint64_t *ret_bytes, struct sp_error *reterr)
    SP_MUST_CHECK;

/* "64 MiB", "1.5 GiB", "700 bytes": the largest unit of which it is at least one. */
void sp_size_text(uint64_t bytes, char *to, size_t size);

#endif
