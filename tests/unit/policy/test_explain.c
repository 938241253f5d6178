/* The sentence of a verdict, and a policy without its rules. */
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "policy/policy.h"

static void test_explain_names_rule_place_and_remedy(void **state)
{
    const struct sp_policy *p = sp_policy_builtin("no-network");
    struct sp_verdict v = sp_policy_import(p, "ftplib", true);
    struct sp_explanation e;
    (void)state;
    assert_int_equal(v.action, SP_DENY);
    sp_policy_explain(p, &v, "import", "ftplib", &e);
    assert_non_null(
        strstr(e.message, "import ftplib is denied by policy 'no-network'"));
    assert_non_null(strstr(e.message, "network.clients \"ftplib\", no-network.toml:"));
    assert_non_null(strstr(e.hint, "--allow-import ftplib"));
}

static void test_explain_keeps_the_rule_of_a_long_target(void **state)
{
    const struct sp_policy *p = sp_policy_builtin("no-network");
    struct sp_verdict v = sp_policy_network(p);
    struct sp_explanation e;
    char target[4096];
    (void)state;
    for (size_t i = 0; i + 2 < sizeof target; i += 2)
        memcpy(target + i, "\xc3\xa9", 2); /* an e with an accent */
    memcpy(target + sizeof target - 6, "/end", 5);
    for (size_t cut = 0; cut < 4; cut++) {
        sp_policy_explain(p, &v, "connect", target + cut * 2, &e);
        assert_non_null(strstr(e.message, "..."));
        assert_non_null(strstr(e.message, "/end is denied by policy"));
        assert_non_null(strstr(e.message, ", no-network.toml:"));
        /* No character was cut: after each first byte comes its second. */
        for (const char *c = e.message; *c != '\0'; c++)
            if (*c == '\xc3')
                assert_int_equal(*++c, '\xa9');
            else
                assert_true((unsigned char)*c < 0x80);
    }
}

static void test_opened_policy_denies_nothing_by_a_rule(void **state)
{
    (void)state;
    for (size_t i = 0; sp_policy_builtin_at(i) != NULL; i++) {
        const struct sp_policy *p = sp_policy_builtin_at(i);
        struct sp_policy *opened;
        assert_int_equal(sp_policy_opened(p, &opened, NULL), 0);
        assert_true(sp_policy_sound(opened, opened->size));
        assert_int_equal(sp_policy_import(opened, "ftplib", true).action, SP_ALLOW);
        assert_int_equal(sp_policy_network(opened).action, SP_ALLOW);
        assert_int_equal(sp_policy_reach(opened), SP_REACH_OPEN);
        assert_int_equal(sp_policy_fork(opened).action, SP_ALLOW);
        for (int list = 0; list < SP_LIST_COUNT; list++)
            assert_false(sp_policy_restricts(opened, (enum sp_list)list));
        assert_int_equal(opened->traces_only, p->traces_only);
        assert_int_equal(sp_policy_limit(opened, SP_LIMIT_WALL),
                         sp_policy_limit(p, SP_LIMIT_WALL));
        free(opened);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_explain_names_rule_place_and_remedy),
        cmocka_unit_test(test_explain_keeps_the_rule_of_a_long_target),
        cmocka_unit_test(test_opened_policy_denies_nothing_by_a_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
