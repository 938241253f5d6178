#include "trace/chain.h"

#include <string.h>

int sp_chain_init(struct sp_chain *c)
{
    /* Picks the fastest BLAKE2b for this processor; without it the portable one is used,
     * at two thirds of the speed. */
    if (sodium_init() < 0)
        return -1;
    memset(c->chain, 0, sizeof c->chain);
    return crypto_generichash_init(&c->block, NULL, 0, SP_CHAIN_BYTES);
}

void sp_chain_add(struct sp_chain *c, const void *data, size_t size)
{
    crypto_generichash_update(&c->block, data, size);
}

static void link_block(const uint8_t before[SP_CHAIN_BYTES],
                       const uint8_t digest[SP_CHAIN_BYTES],
                       uint8_t ret_chain[SP_CHAIN_BYTES])
{
    crypto_generichash_state link;
    crypto_generichash_init(&link, NULL, 0, SP_CHAIN_BYTES);
    crypto_generichash_update(&link, before, SP_CHAIN_BYTES);
    crypto_generichash_update(&link, digest, SP_CHAIN_BYTES);
    crypto_generichash_final(&link, ret_chain, SP_CHAIN_BYTES);
}

void sp_chain_peek(const struct sp_chain *c, uint8_t ret_chain[SP_CHAIN_BYTES])
{
    uint8_t digest[SP_CHAIN_BYTES];
    crypto_generichash_state block = c->block;
    crypto_generichash_final(&block, digest, sizeof digest);
    link_block(c->chain, digest, ret_chain);
}

void sp_chain_close(struct sp_chain *c, struct sp_chain_link *ret_link)
{
    uint8_t digest[SP_CHAIN_BYTES];
    crypto_generichash_final(&c->block, digest, sizeof digest);
    link_block(c->chain, digest, c->chain);

    sodium_bin2hex(ret_link->digest, sizeof ret_link->digest, digest, sizeof digest);
    sodium_bin2hex(ret_link->chain, sizeof ret_link->chain, c->chain, sizeof c->chain);
    crypto_generichash_init(&c->block, NULL, 0, SP_CHAIN_BYTES);
}
