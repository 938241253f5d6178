/* Signing a trace, and the texts that keys are kept in. Pure: no file is touched here.
 *
 * What is signed is the chain as it is right before the `signature` member of the `end` line: it
 * stands for every byte up to there, and all that follows is worked out from it.
 */
#ifndef SP_TRACE_SIGNATURE_H
#define SP_TRACE_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/chain.h"

#define SP_KEY_BYTES        32u /* of a public key, and of the seed of a private one */
#define SP_KEY_TEXT         44u /* either in base64 */
#define SP_SIGNATURE_TEXT   88u /* in base64 */
#define SP_FINGERPRINT_TEXT 32u /* BLAKE2b-128 of a public key, in hexadecimal */
#define SP_KEY_FILE_MAX     4096u

struct sp_public_key {
    uint8_t bytes[SP_KEY_BYTES];
};

/* Whoever holds one sees to where it lies, and to wiping it. */
struct sp_signing_key {
    uint8_t secret[64]; /* the seed, then the public key */
};

/* Signs a chain; terminated. */
void sp_signature_make(const struct sp_signing_key *key,
                       const uint8_t chain[SP_CHAIN_BYTES],
                       char ret_text[SP_SIGNATURE_TEXT + 1]);

/* Whether `text`, of SP_SIGNATURE_TEXT characters, is this key's signature of the chain. */
bool sp_signature_check(const struct sp_public_key *key,
                        const uint8_t chain[SP_CHAIN_BYTES], const char *text);

/* The two do not overlap. */
void sp_signing_key_from_seed(const uint8_t seed[SP_KEY_BYTES],
                              struct sp_signing_key *ret_key);
void sp_signing_key_public(const struct sp_signing_key *key,
                           struct sp_public_key *ret_key);

/* By what a person tells keys apart; terminated. */
void sp_key_fingerprint(const struct sp_public_key *key,
                        char ret_text[SP_FINGERPRINT_TEXT + 1]);

/* SP_KEY_BYTES as base64, terminated; and back: exactly SP_KEY_TEXT characters. */
void sp_key_to_text(const uint8_t bytes[SP_KEY_BYTES], char ret_text[SP_KEY_TEXT + 1]);
bool sp_key_from_text(const char *text, size_t size, uint8_t ret_bytes[SP_KEY_BYTES]);

enum sp_key_half {
    SP_KEY_PUBLIC,
    SP_KEY_PRIVATE,
};

/* The word that the key's line begins with. */
const char *sp_key_word(enum sp_key_half half);

/* The bytes of the one key of that half in a key file's text (comments, blank lines, one line
 * with word and base64). `name` is for messages. SP_E_USAGE. */
int sp_key_parse(enum sp_key_half half, const char *text, size_t size, const char *name,
                 uint8_t ret_bytes[SP_KEY_BYTES], struct sp_error *reterr)
    SP_MUST_CHECK;

#endif
