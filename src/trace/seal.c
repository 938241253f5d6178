#include "trace/seal.h"

#include <string.h>

#include "trace/chain.h"
#include "trace/grammar.h"

/* `,"bytes":` ... `,"digest":"` 64 `","chain":"` 64 `"}`, with at most 20 digits. */
#define DIGEST_PART ",\"digest\":\""
#define CHAIN_PART  "\",\"chain\":\""
#define SEAL_FIXED                                                                     \
    (sizeof DIGEST_PART - 1 + SP_CHAIN_HEX + sizeof CHAIN_PART - 1 + SP_CHAIN_HEX + 2)

bool sp_seal_read(const char *line, size_t size, struct sp_seal *ret_seal)
{
    if (size < SEAL_FIXED)
        return false;
    const char *p = line + size - SEAL_FIXED;
    const char *number_end = p;
    const char *digest = p + sizeof DIGEST_PART - 1;
    const char *middle = digest + SP_CHAIN_HEX;
    const char *chain = middle + sizeof CHAIN_PART - 1;
    if (memcmp(p, DIGEST_PART, sizeof DIGEST_PART - 1) != 0 ||
        memcmp(middle, CHAIN_PART, sizeof CHAIN_PART - 1) != 0 ||
        memcmp(chain + SP_CHAIN_HEX, "\"}", 2) != 0)
        return false;
    while (p > line && p[-1] >= '0' && p[-1] <= '9')
        p--;
    static const char key[] = ",\"bytes\":";
    uint64_t bytes;
    if (!sp_grammar_uint(p, (size_t)(number_end - p), &bytes) ||
        (size_t)(p - line) < sizeof key - 1 ||
        memcmp(p - (sizeof key - 1), key, sizeof key - 1) != 0)
        return false;
    *ret_seal = (struct sp_seal){.covered = (size_t)(p - line) - (sizeof key - 1),
                                 .bytes = bytes,
                                 .digest = digest,
                                 .chain = chain};
    return true;
}
