#include "supervise/keyed.h"

#include <sodium.h>
#include <stdbool.h>

uint64_t sp_keyed_hash(const void *data, size_t size)
{
    static unsigned char key[crypto_shorthash_KEYBYTES];
    static bool made;
    uint64_t hash;
    _Static_assert(sizeof hash == crypto_shorthash_BYTES, "SipHash gives 64 bits");
    if (!made)
        randombytes_buf(key, sizeof key);
    made = true;
    crypto_shorthash((unsigned char *)&hash, data, size, key);
    return hash;
}
