#include "requires.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "store.h"
#include "trace/signature.h"
#include "trace/verify.h"

static struct sp_signing_key key_of(uint8_t first)
{
    struct sp_signing_key key;
    uint8_t seed[SP_KEY_BYTES] = {first};
    sp_signing_key_from_seed(seed, &key);
    return key;
}

static enum sp_verify_code verified(const struct store *s,
                                    const struct sp_public_key *key,
                                    struct sp_verify *ret)
{
    lseek(s->fd, 0, SEEK_SET);
    sp_verify_fd(s->fd, key, ret);
    return ret->code;
}

/* With many blocks, so that the signature is about more than the last. */
static struct store write_signed(const struct sp_signing_key *key, bool ends)
{
    struct store s =
        store_open(&(struct sp_trace_options){.checkpoint_bytes = 1000, .key = key});
    store_start(&s);
    for (uint64_t i = 0; i < 100; i++)
        store_open_event(&s, i);
    if (ends)
        assert_int_equal(store_finish(&s), 0);
    else
        sp_trace_flush(s.w, true);
    return s;
}

static void test_signature_holds_for_its_key_only(void **state)
{
    const struct sp_signing_key key = key_of(1);
    const struct sp_signing_key other = key_of(2);
    struct sp_public_key mine;
    struct sp_public_key theirs;
    struct sp_verify v;
    (void)state;
    sp_signing_key_public(&key, &mine);
    sp_signing_key_public(&other, &theirs);
    struct store s = write_signed(&key, true);
    assert_int_equal(verified(&s, NULL, &v), SP_VERIFY_SOUND);
    assert_int_equal(v.signature, SP_SIGNED_BY);
    assert_memory_equal(&v.signer, &mine, sizeof mine);
    assert_true(v.blocks > 3);
    assert_int_equal(verified(&s, &mine, &v), SP_VERIFY_SOUND);
    assert_int_equal(verified(&s, &theirs, &v), SP_VERIFY_ALTERED);
    assert_true(v.refused);
    store_close(&s);
}

static void test_signature_is_missing_without_an_end(void **state)
{
    const struct sp_signing_key key = key_of(1);
    struct sp_public_key mine;
    struct sp_verify v;
    (void)state;
    sp_signing_key_public(&key, &mine);
    struct store s = write_signed(&key, false);
    assert_int_equal(verified(&s, NULL, &v), SP_VERIFY_CUT);
    assert_int_equal(v.signature, SP_SIGNED_UNREACHED);
    assert_int_equal(verified(&s, &mine, &v), SP_VERIFY_ALTERED);
    assert_true(v.refused);
    store_close(&s);
}

static void test_unsigned_trace_has_not_the_key(void **state)
{
    const struct sp_signing_key key = key_of(1);
    struct sp_public_key mine;
    struct sp_verify v;
    (void)state;
    sp_signing_key_public(&key, &mine);
    struct store s = write_signed(NULL, true);
    assert_int_equal(verified(&s, NULL, &v), SP_VERIFY_SOUND);
    assert_int_equal(v.signature, SP_SIGNED_NOT);
    assert_int_equal(verified(&s, &mine, &v), SP_VERIFY_ALTERED);
    store_close(&s);
}

static int parsed(enum sp_key_half half, const char *text)
{
    uint8_t bytes[SP_KEY_BYTES];
    struct sp_error error;
    return sp_key_parse(half, text, strlen(text), "file", bytes, &error);
}

#define PUBLIC  "sandpit-public-key-v1 "
#define PRIVATE "sandpit-private-key-v1 "
#define ZEROS   "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

static void test_key_texts(void **state)
{
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        {PUBLIC ZEROS, true},
        {PUBLIC ZEROS "\n", true},
        {"# a\n\n \t" PUBLIC " \t" ZEROS " \r\n#b", true},
        {"", false},
        {"\n", false},
        {PUBLIC, false},
        {ZEROS, false},
        {"sandpit-public-key-v1" ZEROS, false},
        {PUBLIC ZEROS "=", false},
        {PUBLIC "AAAA", false},
        {PUBLIC "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=", false}, /* loose bits */
        {PUBLIC "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA-=", false},
        {PUBLIC ZEROS " x", false},
        {PUBLIC ZEROS "\n" PUBLIC ZEROS, false},
        {PUBLIC ZEROS "\nx", false},
        {PRIVATE ZEROS, false},
        {"sandpit-public-key-v11 " ZEROS, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if ((parsed(SP_KEY_PUBLIC, cases[i].text) == 0) != cases[i].good)
            fail_msg("case %zu: %s", i, cases[i].text);
    assert_int_equal(parsed(SP_KEY_PRIVATE, PRIVATE ZEROS), 0);
    assert_true(parsed(SP_KEY_PRIVATE, PUBLIC ZEROS) < 0);
}

static void test_key_text_goes_there_and_back(void **state)
{
    uint8_t bytes[SP_KEY_BYTES];
    uint8_t back[SP_KEY_BYTES];
    char text[SP_KEY_TEXT + 1];
    (void)state;
    randombytes_buf(bytes, sizeof bytes);
    sp_key_to_text(bytes, text);
    assert_int_equal(strlen(text), SP_KEY_TEXT);
    assert_true(sp_key_from_text(text, SP_KEY_TEXT, back));
    assert_memory_equal(bytes, back, sizeof bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signature_holds_for_its_key_only),
        cmocka_unit_test(test_signature_is_missing_without_an_end),
        cmocka_unit_test(test_unsigned_trace_has_not_the_key),
        cmocka_unit_test(test_key_texts),
        cmocka_unit_test(test_key_text_goes_there_and_back),
    };
    if (sodium_init() < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
