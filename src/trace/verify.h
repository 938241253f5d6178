/* Checking a trace: that it is what the supervisor wrote, from its start to its end. Reads
 * once, in bounded memory; needs nothing but the file.
 */
#ifndef SP_TRACE_VERIFY_H
#define SP_TRACE_VERIFY_H

#include <stdint.h>

#include "trace/fault.h"

/* Also the exit codes of `sandpit verify`. */
enum sp_verify_code {
    SP_VERIFY_SOUND = 0,
    SP_VERIFY_ALTERED = 1,    /* `fault` says where it stops being sound */
    SP_VERIFY_UNREADABLE = 2, /* no such file, not a trace, a format from the future */
    SP_VERIFY_CUT = 3,        /* sound up to its last checkpoint, but there is no end */
};

struct sp_verify {
    enum sp_verify_code code;
    struct sp_fault
        fault;       /* line and byte: the first that is wrong; CUT: the first that no
                              checkpoint covers; SOUND: lines and bytes of the whole */
    uint64_t events; /* seq numbers that are accounted for, in what is sound */
    uint64_t lost;   /* events that `lost` lines tell of */
    uint64_t blocks; /* whose digest is right */
};

/* By name ("-": standard input), or from an open descriptor, which stays open and is read from
 * where it stands. */
void sp_verify_path(const char *path, struct sp_verify *ret);
void sp_verify_fd(int fd, struct sp_verify *ret);

#endif
