/* Reading: every key, inheritance by key, and all errors of a text at once. */
#include "make.h"

#include "policy/keys.h"

static const struct {
    const char *text;
    unsigned line;
    unsigned column;
    const char *says;
} errors[] = {
    {"x = 1\n", 1, 1, "no key 'x'"},
    {"[fs]\nallow = []\n", 2, 1, "did you mean 'allow_read'"},
    {"[network]\nallow_read = []\n", 2, 1, "one of [fs]"},
    {"[network]\nmode = 'x'\n", 2, 1, "at the top"},
    {"[netwrok]\n", 1, 2, "[network]"},
    {"[fs]\nalow_read_add = []\n", 2, 1, "'allow_read_add'"},
    {"mode = 'Observe'\n", 1, 8, "\"observe\""},
    {"mode = 1\n", 1, 8, "a text, not a number"},
    {"mode = true\n", 1, 8, "not true or false"},
    {"mode = 1979-05-27\n", 1, 8, "not a date"},
    {"mode = [1]\n", 1, 8, "not a list"},
    {"[fs]\nallow_read = [['/a']]\n", 2, 15, "not a list"},
    {"[fs]\nallow_read = {a = 1}\n", 2, 14, "not a table"},
    {"[process]\nfork = 0\n", 2, 8, "true or false, not a number"},
    {"[limits]\nwall = '0'\n", 2, 8, "no time"},
    {"[limits]\nwall = -1\n", 2, 8, "wall"},
    {"[limits]\nmemory = 1.5\n", 2, 10, "memory"},
    {"[limits]\nmemory = '5 parsec'\n", 2, 10, "not a size"},
    {"[limits]\nprocesses = '5'\n", 2, 13, "a whole number"},
    {"[limits]\nopen_files = 1e3\n", 2, 14, "a whole number"},
    {"description = 5\n", 1, 15, "a text"},
    {"extends = ['default']\n", 1, 11, "a text"},
    {"extends = 'absent'\n", 1, 11, "no policy 'absent'"},
    {"[fs]\nallow_read = ['\xc3\xa9']\n", 2, 15, "begins with /"},
    {"[env]\nallow = ['A=b']\n", 2, 10, "="},
    {"[imports]\nallow = ['a b']\n", 2, 10, "module"},
    {"[imports]\nallow = ['a..b']\n", 2, 10, "empty"},
    {"[network]\nallow = ['x:0']\n", 2, 10, "65535"},
    {"[network]\nallow = ['x:65536']\n", 2, 10, "65535"},
    {"[network]\nallow = ['10.0.0.0/33']\n", 2, 10, "range"},
    {"[network]\nallow = ['10.0.0.0/-1']\n", 2, 10, "range"},
    {"[network]\nallow = ['10.0.0.0/99999999999']\n", 2, 10, "range"},
    {"[network]\nallow = ['10.0.0.1/31']\n", 2, 10, "more bits"},
    {"[network]\nallow = ['unix:x']\n", 2, 10, "begins with /"},
    {"[fs]\nallow_read = ['{home}x']\n", 2, 15, "a slash belongs"},
    {"[fs]\nallow_read = ['/a/{work}']\n", 2, 15, "only at the beginning"},
    {"[fs]\nallow_read = ['/a/../b']\n", 2, 15, "no . and .."},
    {"[fs]\nallow_read = ['/a/.']\n", 2, 15, "no . and .."},
    {"[fs]\nallow_read = ['a\\tb']\n", 2, 15, "begins with /"},
    {"[fs]\nallow_read = [\"/a\\tb\"]\n", 2, 15, "control character"},
};

static void test_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct sp_policy *p = make_written(errors[i].text, strlen(errors[i].text));
        const struct sp_problem *one = &problems.items[0];
        if (p != NULL || problems.count != 1 || one->line != errors[i].line ||
            one->column != errors[i].column ||
            strstr(one->message, errors[i].says) == NULL)
            fail_msg("%s: %u problems, %u:%u %s", errors[i].text, problems.count,
                     one->line, one->column, one->message);
    }
}

static void test_all_errors_are_told_in_order(void **state)
{
    static const char text[] = "[env]\nallow = ['=', 3, 'A']\nx = 1\n[fs]\ny = 1\n";
    (void)state;
    assert_null(make_written(text, sizeof text - 1));
    assert_int_equal(problems.count, 4);
    for (unsigned i = 1; i < problems.count; i++)
        assert_true(problems.items[i - 1].line < problems.items[i].line ||
                    problems.items[i - 1].column < problems.items[i].column);
}

/* Every key of the table is read, in its section and in no other. */
static void test_every_key_is_read(void **state)
{
    (void)state;
    for (const struct sp_policy_key *k = sp_policy_keys; k->name != NULL; k++) {
        char text[160];
        const char *value = k->type == SP_KEY_PATTERNS ? "['a']"
                            : k->type == SP_KEY_BOOL   ? "false"
                            : k->type == SP_KEY_COUNT  ? "7"
                            : k->type == SP_KEY_WORD   ? ""
                                                       : "'5'";
        char word[40] = "";
        if (k->type == SP_KEY_WORD)
            snprintf(word, sizeof word, "'%s'", k->words[1]);
        if (k->type == SP_KEY_PATTERNS && strcmp(k->section, "fs") == 0)
            value = "['/a']";
        if (strcmp(k->name, "extends") == 0)
            value = "'default'";
        snprintf(text, sizeof text, "%s%s%s\n%s = %s%s\n",
                 k->section[0] != '\0' ? "[" : "", k->section,
                 k->section[0] != '\0' ? "]" : "", k->name, value, word);
        struct sp_policy *p = make_written(text, strlen(text));
        if (p == NULL)
            fail_msg("%s%s", text, problems.items[0].message);
        free(p);
        snprintf(text, sizeof text, "[nowhere]\n%s = 1\n", k->name);
        assert_null(make_written(text, strlen(text)));
    }
}

static unsigned count_rules(const struct sp_policy *p, enum sp_list list,
                            enum sp_action action)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < p->rules_count; i++)
        n += sp_policy_rules(p)[i].list == list &&
             sp_policy_rules(p)[i].action == action;
    return n;
}

static void test_inheritance_is_by_key(void **state)
{
    (void)state;
    const struct sp_policy *base = sp_policy_builtin("default");
    static const char text[] =
        "extends = 'default'\n"
        "[fs]\n"
        "deny_read = ['/x']\n"            /* replaces */
        "deny_write_add = ['/y', '/z']\n" /* extends */
        "[limits]\n"
        "wall = '5s'\n"
        "cpu = 'none'\n"
        "[process]\n"
        "allow_add = ['git']\n"
        "allow = ['ls']\n"; /* given comes before what is added */
    struct sp_policy *p = make_written(text, sizeof text - 1);
    assert_non_null(p);
    assert_int_equal(count_rules(p, SP_LIST_READ, SP_DENY), 1);
    assert_int_equal(count_rules(p, SP_LIST_WRITE, SP_DENY),
                     count_rules(base, SP_LIST_WRITE, SP_DENY) + 2);
    assert_int_equal(count_rules(p, SP_LIST_WRITE, SP_ALLOW),
                     count_rules(base, SP_LIST_WRITE, SP_ALLOW));
    assert_int_equal(count_rules(p, SP_LIST_PROCESS, SP_ALLOW), 2);
    assert_int_equal(count_rules(p, SP_LIST_CLIENTS, SP_DENY),
                     count_rules(base, SP_LIST_CLIENTS, SP_DENY));
    assert_int_equal(sp_policy_limit(p, SP_LIMIT_WALL), 5000000000u);
    assert_int_equal(sp_policy_limit(p, SP_LIMIT_CPU), 0);
    assert_int_equal(sp_policy_limit(p, SP_LIMIT_MEMORY),
                     sp_policy_limit(base, SP_LIMIT_MEMORY));
    assert_string_equal(sp_policy_text(p, p->description), "");
    assert_true(sp_policy_sound(p, p->size));
    free(p);
}

static void test_added_patterns_deny_nothing_else(void **state)
{
    (void)state;
    struct sp_policy *p = make_bound("[fs]\nallow_read_add = ['/a']\n");
    assert_false(sp_policy_restricts(p, SP_LIST_READ));
    assert_int_equal(sp_policy_path(p, SP_LIST_READ, "/b").action, SP_ALLOW);
    free(p);
}

static void test_what_is_only_traced(void **state)
{
    static const struct {
        const char *text;
        bool traces_only;
    } cases[] = {
        {"", true},
        {"[limits]\nwall = 1\n", true},
        {"[env]\nallow = []\n", true},
        {"[trace]\ncalls = 'all'\n", true},
        {"[process]\nfork = false\n", false},
        {"[imports]\nnative = 'deny'\n", false},
        {"[imports]\ndeny = ['x']\n", false},
        {"[fs]\nallow_write = []\n", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sp_policy *p = make_written(cases[i].text, strlen(cases[i].text));
        assert_non_null(p);
        assert_int_equal(p->traces_only != 0, cases[i].traces_only);
        free(p);
    }
}

static void test_too_many_rules_are_refused(void **state)
{
    size_t size = 0;
    char *text = malloc(17000 * 12 + 40);
    (void)state;
    assert_non_null(text);
    size += (size_t)sprintf(text, "[fs]\ndeny_read = [");
    for (int i = 0; i < 17000; i++)
        size += (size_t)sprintf(text + size, "'/%d',", i);
    size += (size_t)sprintf(text + size, "]\n");
    assert_null(make_written(text, size));
    assert_non_null(strstr(problems.items[0].message, "too large"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_all_errors_are_told_in_order),
        cmocka_unit_test(test_every_key_is_read),
        cmocka_unit_test(test_inheritance_is_by_key),
        cmocka_unit_test(test_added_patterns_deny_nothing_else),
        cmocka_unit_test(test_what_is_only_traced),
        cmocka_unit_test(test_too_many_rules_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
