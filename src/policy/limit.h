/* What a run may use, as a closed list. */
#ifndef SP_POLICY_LIMIT_H
#define SP_POLICY_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum sp_limit {
    SP_LIMIT_WALL,       /* ns; ends the run */
    SP_LIMIT_CPU,        /* ns of all processes together; ends the run */
    SP_LIMIT_MEMORY,     /* bytes in use by all processes together; ends the run */
    SP_LIMIT_PROCESSES,  /* count, threads included; the call fails */
    SP_LIMIT_OPEN_FILES, /* count, per process; the call fails */
    SP_LIMIT_FILE_SIZE,  /* bytes, of one file; the call fails */
    SP_LIMIT_DISK,   /* bytes of blocks that the run created or grew; ends the run */
    SP_LIMIT_OUTPUT, /* bytes of stdout and stderr together; ends the run */
    SP_LIMIT_TRACE,  /* bytes of the trace; ends nothing */
    SP_LIMIT_COUNT,
};

/* What a limit counts. */
enum sp_limit_unit {
    SP_LIMIT_NS,
    SP_LIMIT_BYTES,
    SP_LIMIT_NUMBER,
};

/* A value of each; 0: none. */
struct sp_limits {
    uint64_t value[SP_LIMIT_COUNT];
};

/* A number of processes or files is at most this. */
#define SP_LIMIT_NUMBER_MAX (UINT64_C(1) << 30)

const char *sp_limit_name(enum sp_limit limit); /* "wall", "open_files" ... */
int sp_limit_find(const char *name);            /* enum sp_limit; -1: unknown */
enum sp_limit_unit sp_limit_unit(enum sp_limit limit);

/* Whether reaching it ends the run. */
bool sp_limit_ends(enum sp_limit limit);

/* A value as people write it: "30s", "64MiB", "16". Fails with SP_E_USAGE and a sentence that
 * quotes the text. */
int sp_limit_parse(enum sp_limit limit, const char *text, uint64_t *ret_value,
                   struct sp_error *reterr) SP_MUST_CHECK;

/* The same from a bare number: seconds, bytes, or a count. */
int sp_limit_from_number(enum sp_limit limit, double number, uint64_t *ret_value,
                         struct sp_error *reterr) SP_MUST_CHECK;

/* "2.5 s", "64 MiB", "16": for sentences. */
void sp_limit_text(enum sp_limit limit, uint64_t value, char *to, size_t size);

#endif
