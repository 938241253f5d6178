#include "trace/signature.h"

#include <sodium.h>
#include <string.h>

/* In front of the chain in what is signed, so that no signature of something else, made with the
 * same key, can be taken for one of a trace. */
static const char purpose[16] = {'s', 'a', 'n', 'd', 'p', 'i', 't', '-',
                                 't', 'r', 'a', 'c', 'e', '-', 'v', '1'};

_Static_assert(sizeof(struct sp_signing_key) == crypto_sign_SECRETKEYBYTES,
               "as libsodium keeps it");

#define MESSAGE_BYTES (sizeof purpose + SP_CHAIN_BYTES)

static void message_of(const uint8_t chain[SP_CHAIN_BYTES], uint8_t to[MESSAGE_BYTES])
{
    memcpy(to, purpose, sizeof purpose);
    memcpy(to + sizeof purpose, chain, SP_CHAIN_BYTES);
}

static bool from_base64(const char *text, size_t size, uint8_t *to, size_t to_size)
{
    size_t n;
    return sodium_base642bin(to, to_size, text, size, NULL, &n, NULL,
                             sodium_base64_VARIANT_ORIGINAL) == 0 &&
           n == to_size;
}

void sp_signature_make(const struct sp_signing_key *key,
                       const uint8_t chain[SP_CHAIN_BYTES],
                       char ret_text[SP_SIGNATURE_TEXT + 1])
{
    uint8_t message[MESSAGE_BYTES];
    uint8_t signature[crypto_sign_BYTES];
    message_of(chain, message);
    crypto_sign_detached(signature, NULL, message, sizeof message, key->secret);
    sodium_bin2base64(ret_text, SP_SIGNATURE_TEXT + 1, signature, sizeof signature,
                      sodium_base64_VARIANT_ORIGINAL);
}

bool sp_signature_check(const struct sp_public_key *key,
                        const uint8_t chain[SP_CHAIN_BYTES], const char *text)
{
    uint8_t message[MESSAGE_BYTES];
    uint8_t signature[crypto_sign_BYTES];
    message_of(chain, message);
    return from_base64(text, SP_SIGNATURE_TEXT, signature, sizeof signature) &&
           crypto_sign_verify_detached(signature, message, sizeof message,
                                       key->bytes) == 0;
}

void sp_signing_key_from_seed(const uint8_t seed[SP_KEY_BYTES],
                              struct sp_signing_key *ret_key)
{
    uint8_t public_half[SP_KEY_BYTES];
    crypto_sign_seed_keypair(public_half, ret_key->secret, seed);
}

void sp_signing_key_public(const struct sp_signing_key *key,
                           struct sp_public_key *ret_key)
{
    memcpy(ret_key->bytes, key->secret + SP_KEY_BYTES, SP_KEY_BYTES);
}

void sp_key_fingerprint(const struct sp_public_key *key,
                        char ret_text[SP_FINGERPRINT_TEXT + 1])
{
    uint8_t digest[SP_FINGERPRINT_TEXT / 2];
    crypto_generichash(digest, sizeof digest, key->bytes, sizeof key->bytes, NULL, 0);
    sodium_bin2hex(ret_text, SP_FINGERPRINT_TEXT + 1, digest, sizeof digest);
}

void sp_key_to_text(const uint8_t bytes[SP_KEY_BYTES], char ret_text[SP_KEY_TEXT + 1])
{
    sodium_bin2base64(ret_text, SP_KEY_TEXT + 1, bytes, SP_KEY_BYTES,
                      sodium_base64_VARIANT_ORIGINAL);
}

bool sp_key_from_text(const char *text, size_t size, uint8_t ret_bytes[SP_KEY_BYTES])
{
    return size == SP_KEY_TEXT && from_base64(text, size, ret_bytes, SP_KEY_BYTES);
}

/* ---- key files ----------------------------------------------------------------------------- */

const char *sp_key_word(enum sp_key_half half)
{
    return half == SP_KEY_PRIVATE ? "sandpit-private-key-v1" : "sandpit-public-key-v1";
}

static bool begins(const char *line, size_t size, const char *word)
{
    const size_t n = strlen(word);
    return size >= n && memcmp(line, word, n) == 0 &&
           (size == n || line[n] == ' ' || line[n] == '\t');
}

static int wrong_half(enum sp_key_half half, const char *name, struct sp_error *reterr)
{
    if (half == SP_KEY_PRIVATE)
        return sp_fail(reterr, SP_E_USAGE,
                       "'%.200s' is a public key, which signs nothing: name the "
                       "private one (sandpit keygen PREFIX writes it to PREFIX.key)",
                       name);
    return sp_fail(reterr, SP_E_USAGE,
                   "'%.200s' is a private key: name the public one (sandpit keygen "
                   "PREFIX writes it to PREFIX.pub), and keep this one where no other "
                   "needs it",
                   name);
}

static int malformed(enum sp_key_half half, const char *name, struct sp_error *reterr)
{
    return sp_fail(
        reterr, SP_E_USAGE,
        "'%.200s' is no %s key: one line of '%s' and %u characters of base64 "
        "is expected (sandpit keygen makes them)",
        name, half == SP_KEY_PRIVATE ? "private" : "public", sp_key_word(half),
        SP_KEY_TEXT);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

int sp_key_parse(enum sp_key_half half, const char *text, size_t size, const char *name,
                 uint8_t ret_bytes[SP_KEY_BYTES], struct sp_error *reterr)
{
    const enum sp_key_half other =
        half == SP_KEY_PRIVATE ? SP_KEY_PUBLIC : SP_KEY_PRIVATE;
    const char *word = sp_key_word(half);
    unsigned found = 0;
    for (const char *line = text, *end = text + size; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *stop = newline != NULL ? newline : end;
        const char *next = newline != NULL ? newline + 1 : end;
        while (line < stop && is_blank(*line))
            line++;
        while (stop > line && is_blank(stop[-1]))
            stop--;
        const size_t length = (size_t)(stop - line);
        if (length > 0 && *line != '#') {
            if (begins(line, length, sp_key_word(other)))
                return wrong_half(half, name, reterr);
            if (found++ > 0 || !begins(line, length, word))
                return malformed(half, name, reterr);
            line += strlen(word);
            while (line < stop && is_blank(*line))
                line++;
            if (!sp_key_from_text(line, (size_t)(stop - line), ret_bytes))
                return malformed(half, name, reterr);
        }
        line = next;
    }
    return found == 1 ? 0 : malformed(half, name, reterr);
}
