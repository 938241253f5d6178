/* A policy as text again says the same; and what is odd about one. */
#include "make.h"

#include "policy/lint.h"
#include "policy/write.h"

static const char *const texts[] = {
    "",
    "mode = 'observe'\non_violation = 'stop'\n",
    "description = \"a \\\"b\\\" \\\\ \\u001b \xc3\xa9\"\n",
    "[fs]\nallow_read = []\ndeny_read = ['/a\\b', '**/[!a-c]*', '~/x y']\n",
    "[fs]\nallow_read_add = ['/a']\n",
    "[network]\nallow = ['[2001:db8::/32]:1', 'unix:@x', 'loopback:80', '*:25']\n",
    "[process]\nfork = true\nallow = ['git', '{python}']\n",
    "[limits]\nwall = '90s'\ncpu = 0.25\nmemory = 1048577\nprocesses = 3\ndisk = "
    "'3GiB'\n",
    "extends = 'strict'\n[env]\ndeny_add = ['A']\n",
};

static void test_written_text_makes_the_same_policy(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        sp_auto_buffer text;
        sp_buffer_init(&text, 1u << 20);
        struct sp_policy *one = make_written(texts[i], strlen(texts[i]));
        assert_non_null(one);
        sp_policy_write_toml(one, &text);
        struct sp_policy *two = make_written(text.size > 0 ? text.data : "", text.size);
        if (two == NULL)
            fail_msg("%.*s\n%s", (int)text.size, text.data, problems.items[0].message);
        assert_string_equal(sp_policy_text(one, one->digest),
                            sp_policy_text(two, two->digest));
        assert_string_equal(sp_policy_text(one, one->description),
                            sp_policy_text(two, two->description));
        assert_int_equal(one->rules_count, two->rules_count);
        assert_int_equal(one->traces_only, two->traces_only);
        free(one);
        free(two);
    }
}

static void test_limits_are_written_exactly(void **state)
{
    static const struct {
        enum sp_limit limit;
        uint64_t value;
        const char *text;
    } cases[] = {
        {SP_LIMIT_WALL, 3600000000000u, "1h"},
        {SP_LIMIT_WALL, 90000000000u, "90s"},
        {SP_LIMIT_WALL, 60000000000u, "1m"},
        {SP_LIMIT_CPU, 1500000000u, "1500ms"},
        {SP_LIMIT_CPU, 1u, "1ns"},
        {SP_LIMIT_MEMORY, 1u << 30, "1GiB"},
        {SP_LIMIT_DISK, 1537u << 10, "1537KiB"},
        {SP_LIMIT_DISK, 1000u, "1000"},
        {SP_LIMIT_PROCESSES, 1024u, "1024"},
        {SP_LIMIT_WALL, 0, "none"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[40];
        sp_policy_limit_text(cases[i].limit, cases[i].value, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

static void test_places_are_told(void **state)
{
    static const char text[] =
        "[fs]\ndeny_read = [\n'/a',\n'/b',\n]\n[limits]\nwall = 1\n";
    sp_auto_buffer b;
    (void)state;
    sp_buffer_init(&b, 1u << 16);
    struct sp_policy *p = make_written(text, sizeof text - 1);
    sp_policy_write_places(p, &b);
    sp_buffer_append(&b, "", 1);
    assert_string_equal(b.data, "{\"fs.deny_read\":[\"test.toml:3\",\"test.toml:4\"],"
                                "\"limits.wall\":\"test.toml:7\"}");
    sp_buffer_clear(&b);
    sp_policy_write_json(p, &b);
    sp_buffer_append(&b, "", 1);
    assert_string_equal(
        b.data,
        "{\"fs\":{\"deny_read\":[\"/a\",\"/b\"]},\"limits\":{\"wall\":\"1s\"}}");
    free(p);
}

static const struct {
    const char *text;
    unsigned line; /* 0: no warning */
    const char *says;
} odd[] = {
    {"[fs]\ndeny_read = ['/a', '/b']\n", 0, ""},
    {"[fs]\ndeny_read = ['/a', '/a/']\n", 2, "already"},
    {"[fs]\nallow_read = ['/a']\ndeny_read = ['/a/**']\n", 2, "allows nothing"},
    {"[fs]\nallow_read = ['/a']\ndeny_write = ['/a']\n", 0, ""},
    {"[network]\nallow = ['x.com']\ndeny = ['X.COM.']\n", 2, "allows nothing"},
    {"[network]\nallow = ['x.com:1']\ndeny = ['x.com']\n", 0, ""},
    {"[network]\nallow = ['10.0.0.1', '::ffff:10.0.0.1']\n", 2, "already"},
    {"[imports]\ndeny = ['python-dateutil']\n", 2, "dash"},
    {"[process]\nallow = ['git']\nfork = false\n", 2, "in the place"},
    {"[env]\nallow = ['A', 'A']\n", 2, "already"},
    {"extends = 'default'\n[fs]\ndeny_read_add = ['~/.ssh']\n", 3, "default.toml"},
    {"[fs]\ndeny_read_add = []\n", 2, "does nothing"},
    {"[fs]\ndeny_read = []\n", 2, "does nothing"},
    {"extends = 'default'\n[fs]\ndeny_read = []\n", 0, ""},
    {"[fs]\nallow_read = []\n", 0, ""},
};

static void test_what_is_odd_is_warned_of(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct sp_policy *p = make_written(odd[i].text, strlen(odd[i].text));
        assert_non_null(p);
        sp_policy_lint(p, "test.toml", &problems);
        const struct sp_problem *one = &problems.items[0];
        if (problems.count != (odd[i].line > 0) || problems.errors > 0 ||
            (problems.count > 0 && (one->line != odd[i].line || !one->warning ||
                                    strstr(one->message, odd[i].says) == NULL)))
            fail_msg("%s: %u, line %u: %s", odd[i].text, problems.count, one->line,
                     one->message);
        free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_text_makes_the_same_policy),
        cmocka_unit_test(test_limits_are_written_exactly),
        cmocka_unit_test(test_places_are_told),
        cmocka_unit_test(test_what_is_odd_is_warned_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
