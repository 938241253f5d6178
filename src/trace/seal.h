/* The digests at the end of a checkpoint or end line. */
#ifndef SP_TRACE_SEAL_H
#define SP_TRACE_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sp_seal {
    size_t covered; /* bytes of the line that the digest covers */
    uint64_t bytes;
    const char *digest; /* SP_CHAIN_HEX characters, in the line */
    const char *chain;
};

/* false: the line does not end with them. */
bool sp_seal_read(const char *line, size_t size, struct sp_seal *ret_seal);

#endif
