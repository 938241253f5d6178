/* The digests that tie a trace together. A trace is a sequence of blocks; each ends inside a
 * `checkpoint` or `end` line. A block's digest is BLAKE2b-256 over its raw bytes; the chain
 * is BLAKE2b-256 over the chain before (32 zero bytes at first) and the block's digest.
 */
#ifndef SP_TRACE_CHAIN_H
#define SP_TRACE_CHAIN_H

#include <sodium.h>
#include <stddef.h>
#include <stdint.h>

#define SP_CHAIN_BYTES 32u
#define SP_CHAIN_HEX   (2 * SP_CHAIN_BYTES)

struct sp_chain {
    crypto_generichash_state block;
    uint8_t chain[SP_CHAIN_BYTES]; /* up to the block before */
};

/* The result of closing a block, as hex, terminated. */
struct sp_chain_link {
    char digest[SP_CHAIN_HEX + 1];
    char chain[SP_CHAIN_HEX + 1];
};

/* 0, or -1 when libsodium cannot be used. */
int sp_chain_init(struct sp_chain *c);

/* Adds bytes to the open block. */
void sp_chain_add(struct sp_chain *c, const void *data, size_t size);

/* What the chain would be if the open block ended here; nothing changes. */
void sp_chain_peek(const struct sp_chain *c, uint8_t ret_chain[SP_CHAIN_BYTES]);

/* Closes the block and opens the next. */
void sp_chain_close(struct sp_chain *c, struct sp_chain_link *ret_link);

#endif
