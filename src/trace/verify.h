/* Checking a trace: that it is what the supervisor wrote, from its start to its end. Reads
 * once, in bounded memory; needs nothing but the file.
 */
#ifndef SP_TRACE_VERIFY_H
#define SP_TRACE_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/fault.h"
#include "trace/signature.h"

/* Also the exit codes of `sandpit verify`. */
enum sp_verify_code {
    SP_VERIFY_SOUND = 0,
    SP_VERIFY_ALTERED = 1,    /* `fault` says where it stops being sound */
    SP_VERIFY_UNREADABLE = 2, /* no such file, not a trace, a format from the future */
    SP_VERIFY_CUT = 3,        /* sound up to its last checkpoint, but there is no end */
};

/* What is known about who wrote it. */
enum sp_signed {
    SP_SIGNED_NOT,       /* no signature is announced */
    SP_SIGNED_UNREACHED, /* one is announced, but the trace is cut or altered before it */
    SP_SIGNED_BY,        /* by the key `signer` (of which anybody may have a pair) */
    SP_SIGNED_WRONGLY,   /* the signature does not fit the trace, or is not there */
};

/* `none`, `unreached`, `valid`, `wrong`. */
const char *sp_signed_word(enum sp_signed signature);

struct sp_verify {
    enum sp_verify_code code;
    enum sp_signed signature;
    bool
        refused; /* sound, but not signed by the key that was asked for; ALTERED by that */
    struct sp_public_key signer; /* as the start names it; unless SP_SIGNED_NOT */
    struct sp_fault
        fault;       /* line and byte: the first that is wrong; CUT: the first that no
                              checkpoint covers; SOUND: lines and bytes of the whole */
    uint64_t events; /* seq numbers that are accounted for, in what is sound */
    uint64_t lost;   /* events that `lost` lines tell of */
    uint64_t blocks; /* whose digest is right */
};

/* By name ("-": standard input), or from an open descriptor, which stays open and is read from
 * where it stands. `key`, unless NULL, must have signed it: else the result is ALTERED, for a cut
 * trace too, of which nothing shows that a signed one was cut there. */
void sp_verify_path(const char *path, const struct sp_public_key *key,
                    struct sp_verify *ret);
void sp_verify_fd(int fd, const struct sp_public_key *key, struct sp_verify *ret);

#endif
