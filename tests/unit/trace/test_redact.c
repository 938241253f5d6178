/* Secrets are taken out of lines of a trace, and nothing else is. */
#include "requires.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/redact.h"

#define AKIA                                                                           \
    "AKIA"                                                                             \
    "ABCDEFGHIJ234567"
#define GITHUB                                                                         \
    "ghp_"                                                                             \
    "abcdefghijklmnopqrstuvwxyz0123456789"
#define LONG "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define JWT                                                                            \
    "eyJ"                                                                              \
    "hbGciOiJIUzI1NiJ9"                                                                \
    "."                                                                                \
    "eyJ"                                                                              \
    "zdWIiOiIxIn0"                                                                     \
    "."                                                                                \
    "sig-na_ture"

struct example {
    const char *line;
    const char *expected; /* NULL: stays as it is */
};

static void check(const struct example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[1024];
        size_t size = strlen(examples[i].line);
        memcpy(text, examples[i].line, size + 1);
        unsigned found = sp_redact(text, &size);
        text[size] = '\0';
        const char *expected = examples[i].expected;
        assert_string_equal(text, expected != NULL ? expected : examples[i].line);
        assert_int_equal(found > 0, expected != NULL);
    }
}
#define CHECK(examples) check(examples, sizeof(examples) / sizeof *(examples))

static void test_redact_token_shapes_keep_only_their_prefix(void **state)
{
    static const struct example examples[] = {
        {"\"" AKIA "\"", "\"AKIA***\""},
        {"\"key " AKIA ".\"", "\"key AKIA***.\""},
        {"\"" GITHUB "\"", "\"ghp_***\""},
        {"\"a\\n" GITHUB "\\n\"", "\"a\\nghp_***\\n\""},
        {"\"\\u00e9" GITHUB "\"", "\"\\u00e9ghp_***\""},
        {"\"" GITHUB " " GITHUB "\"", "\"ghp_*** ghp_***\""},
        {"\"github_pat_" LONG "\"", "\"github_pat_***\""},
        {"\"sk-proj-" LONG "\"", "\"sk-***\""},
        {"\"xoxb-123456789012-abc\"", "\"xoxb-***\""},
        {"\"AIza"
         "abcdefghijklmnopqrstuvwxyz012345678\"",
         "\"AIza***\""},
        {"\"" JWT "\"", "\"eyJ***\""},
        {"\"Authorization: Bearer " LONG "\"", "\"Authorization: Bearer ***\""},
        {"\"#\\nsandpit-private-key-v1 "
         "L7SYD8tHSPNDEUu6IIGR3drjN4mcaGFhgliTX3jSlRE=\\n\"",
         "\"#\\nsandpit-private-key-v1 ***\\n\""},
        {"\"sandpit-private-key-v1 is the word\"", NULL},
        {"\"Authorization: Basic dXNlcjpwYXNz\"", "\"Authorization: Basic ***\""},
    };
    (void)state;
    CHECK(examples);
}

static void test_redact_private_keys_up_to_their_end(void **state)
{
    static const struct example examples[] = {
        {"\"-----BEGIN RSA PRIVATE KEY-----\\nMIIE\\n-----END RSA PRIVATE "
         "KEY-----\\nx\"",
         "\"-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----\\nx\""},
        {"\"-----BEGIN PRIVATE KEY-----\\nMIIEabc\",\"y\":1",
         "\"-----BEGIN PRIVATE KEY-----***\",\"y\":1"},
        {"\"-----BEGIN PGP PRIVATE KEY BLOCK-----\\nabcd\"",
         "\"-----BEGIN PGP PRIVATE KEY BLOCK-----***\""},
        {"\"-----BEGIN CERTIFICATE-----\\nMIIE\\n-----END CERTIFICATE-----\"", NULL},
    };
    (void)state;
    CHECK(examples);
}

static void test_redact_passwords_in_addresses(void **state)
{
    static const struct example examples[] = {
        {"\"https://me:hunter2@host/path\"", "\"https://me:***@host/path\""},
        {"\"postgres://u:p%40ss@h:5432/db\"", "\"postgres://u:***@h:5432/db\""},
        {"\"https://host:8080/a@b\"", NULL},
        {"\"https://me@host/\"", NULL},
        {"\"http://[::1]:80/x:y@z\"", NULL},
    };
    (void)state;
    CHECK(examples);
}

static void test_redact_named_values_in_arguments(void **state)
{
    static const struct example examples[] = {
        {"{\"argv\":[\"x\",\"--password=hunter2\",\"y\"]}",
         "{\"argv\":[\"x\",\"--password=***\",\"y\"]}"},
        {"{\"argv\":[\"x\",\"--token\",\"hunter2\",\"y\"]}",
         "{\"argv\":[\"x\",\"--token\",\"***\",\"y\"]}"},
        {"{\"argv\":[\"env\",\"GITHUB_TOKEN=abc/d+e=\",\"x\"]}",
         "{\"argv\":[\"env\",\"GITHUB_TOKEN=***\",\"x\"]}"},
        {"{\"argv\":[\"x\",\"http://h/?a=1&access_token=abcd&b=2\"]}",
         "{\"argv\":[\"x\",\"http://h/?a=1&access_token=***&b=2\"]}"},
        {"{\"argv\":[\"-c\",\"f(password=\\\"hunter2\\\")\"]}",
         "{\"argv\":[\"-c\",\"f(password=\\\"***\\\")\"]}"},
        {"{\"argv\":[\"-c\",\"f(password='hunter2')\"]}",
         "{\"argv\":[\"-c\",\"f(password='***')\"]}"},
        /* a program's text, and names that say something else */
        {"{\"argv\":[\"-c\",\"f(password=secret_of(1))\"]}", NULL},
        {"{\"argv\":[\"x\",\"--tokenizer=gpt2\",\"--token-file=/x/y\"]}", NULL},
        {"{\"argv\":[\"x\",\"--password\",\"--force\"]}", NULL},
        {"{\"argv\":[\"x\",\"--password\"]}", NULL},
        {"{\"argv\":[\"password\",\"hunter2\"]}", NULL},
        /* only the value is taken: what else a shell is told stays */
        {"{\"argv\":[\"sh\",\"-c\",\"token=x; rm -rf /\"]}", NULL},
        {"{\"argv\":[\"sh\",\"-c\",\"token=abcd; rm -rf /\"]}",
         "{\"argv\":[\"sh\",\"-c\",\"token=***; rm -rf /\"]}"},
        {"{\"argv\":[\"sh\",\"-c\",\"token=$(rm -rf /)\"]}", NULL},
    };
    (void)state;
    CHECK(examples);
}

/* A guest must not be able to hide what it does behind a name that sounds like a secret's. */
static void test_redact_paths_and_other_texts_keep_named_values(void **state)
{
    static const struct example examples[] = {
        {"{\"path\":\"/work/password=/../../etc/shadow\"}", NULL},
        {"{\"target\":\"/x/--token=abcdef\",\"argv\":[\"a\"],\"path\":\"token=abcd\"}",
         NULL},
        {"{\"path\":\"x\\\"argv\\\":[\",\"p\":\"token=abcd\"}", NULL},
        {"{\"argv\":[\"]\",\"--token=abcd\"],\"p\":\"token=abcd\"}",
         "{\"argv\":[\"]\",\"--token=***\"],\"p\":\"token=abcd\"}"},
    };
    (void)state;
    CHECK(examples);
}

static void test_redact_leaves_what_only_looks_alike(void **state)
{
    static const struct example examples[] = {
        {"\"AKIASHORT\"", NULL},
        {"\"XAKIAABCDEFGHIJ234567\"", NULL},
        {"\"sk-container-id-1-doc-link-label\"", NULL},
        {"\"eyJhbGciOiJIUzI1NiJ9\"", NULL},
        {"\"eyJhbGciOiJIUzI1NiJ9.abc.def\"", NULL},
        {"\"/usr/lib/python3.11/site-packages/ghp_module.py\"", NULL},
        {"", NULL},
        {"\"", NULL},
        {"\"\\", NULL},
        {"{\"argv\":[", NULL},
        {"{\"argv\":[\"--token=", NULL},
        {"{\"argv\":[\"--token\",\"", NULL},
        {"\"-----BEGIN PRIVATE KEY", NULL},
        {"\"://a:", NULL},
    };
    (void)state;
    CHECK(examples);
}

/* Each piece begins something that its followers keep from being one. Were the rest of the text walked
 * from each, the test would take minutes, and a guest that prints it would hold the supervisor up. */
static void test_redact_walks_a_text_of_beginnings_once(void **state)
{
    static const char *const pieces[] = {
        "sk-",
        "eyJ-",
        "eyJ-.",
        "eyJ-eyJ-eyJ-eyJ-.eyJ-.",
        "://a:",
        "://a:b",
        "=",
        "?token=",
        "-----BEGIN PRIVATE KEY----------END ",
        "-----BEGIN PRIVATE KEY",
        "\",\"--token\",\"a\",\"",
        "?token=\\\"a\\\"",
    };
    enum { NOISE = 1 << 20 };
    static const char secret[] = "\",\"" GITHUB " sk-" LONG " " JWT "\"]}";
    static const char masked[] = "\",\"ghp_*** sk-*** eyJ***\"]}";
    (void)state;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        char *text = malloc(NOISE + 1024);
        assert_non_null(text);
        size_t size = (size_t)sprintf(text, "{\"argv\":[\"");
        for (size_t n = strlen(pieces[i]); size + n < NOISE; size += n)
            memcpy(text + size, pieces[i], n);
        memcpy(text + size, secret, sizeof secret);
        size += sizeof secret - 1;
        assert_true(sp_redact(text, &size) >= 3);
        assert_memory_equal(text + size - (sizeof masked - 1), masked,
                            sizeof masked - 1);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_redact_token_shapes_keep_only_their_prefix),
        cmocka_unit_test(test_redact_private_keys_up_to_their_end),
        cmocka_unit_test(test_redact_passwords_in_addresses),
        cmocka_unit_test(test_redact_named_values_in_arguments),
        cmocka_unit_test(test_redact_paths_and_other_texts_keep_named_values),
        cmocka_unit_test(test_redact_leaves_what_only_looks_alike),
        cmocka_unit_test(test_redact_walks_a_text_of_beginnings_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
