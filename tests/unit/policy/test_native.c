/* Where native code comes from, and what each setting makes of it. */
#include "requires.h"

#include "make.h"
#include "policy/policy.h"

static struct sp_policy *make_policy(const char *text)
{
    struct sp_policy *p = make_written(text, strlen(text));
    assert_non_null(p);
    return p;
}

/* As a virtual environment of a version manager's interpreter, and of the system's. */
static const char roots[] = "/work/venv/lib/python\0"
                            "/opt/py/lib/python\0"
                            "/usr/lib/python\0"
                            "/home/me/.local/lib/python\0";

static void test_files_are_told_apart_by_where_they_lie(void **state)
{
    static const struct {
        const char *path;
        enum sp_code_file kind;
        const char *why;
    } rows[] = {
        {"/opt/py/lib/python3.13/lib-dynload/math.so", SP_CODE_STDLIB, "its own"},
        {"/opt/py/lib/python3.13t/lib-dynload/math.so", SP_CODE_STDLIB,
         "free-threaded"},
        {"/usr/lib/python3.11/lib-dynload/math.so", SP_CODE_STDLIB, "the system's"},
        {"/opt/py/lib/python3.13/site-packages/x/y.so", SP_CODE_INSTALLED, "a package"},
        {"/usr/lib/python3/dist-packages/x.so", SP_CODE_INSTALLED, "Debian's"},
        {"/work/venv/lib/python3.13/site-packages/a.so", SP_CODE_INSTALLED, "a venv's"},
        {"/home/me/.local/lib/python3.13/site-packages/a.so", SP_CODE_INSTALLED,
         "user"},
        {"/home/me/.local/lib/evil.so", SP_CODE_OTHER, "beside it, nobody's"},
        {"/opt/py/lib/libpython3.13.so.1.0", SP_CODE_SYSTEM, "the interpreter itself"},
        {"/opt/py/lib/site-packages/a.so", SP_CODE_OTHER, "no version's"},
        {"/usr/lib/x86_64-linux-gnu/libssl.so.3", SP_CODE_SYSTEM, "a system library"},
        {"/usr/lib/x86_64-linux-gnu/libgcc_s.so.1", SP_CODE_LIBC, "for libc's threads"},
        {"/usr/lib/x86_64-linux-gnu/gconv/UTF-16.so", SP_CODE_LIBC, "a character set"},
        {"/tmp/libgcc_s.so.1", SP_CODE_OTHER, "a namesake"},
        {"/tmp/gconv/x.so", SP_CODE_OTHER, "a namesake"},
        {"/usr/lib/pypy3/site-packages/x.so", SP_CODE_OTHER, "another interpreter's"},
        {"/opt/py/lib/python3.13/lib-dynload/_ctypes.so", SP_CODE_CALLS_ANY, "ctypes"},
        {"/x/site-packages/_cffi_backend.cpython-313.so", SP_CODE_CALLS_ANY, "cffi"},
        {"/opt/py/lib/python3.13/lib-dynload/_ctypesx.so", SP_CODE_STDLIB, "is not"},
        {"/work/extension.so", SP_CODE_OTHER, "the program's"},
        {"/memfd:x (deleted)", SP_CODE_OTHER, "no file"},
        {"relative.so", SP_CODE_OTHER, "no path"},
        {"", SP_CODE_OTHER, "nothing"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum sp_code_file kind = sp_code_file_of(rows[i].path, roots);
        if (kind != rows[i].kind)
            fail_msg("%s (%s): %d", rows[i].path, rows[i].why, (int)kind);
    }
}

static void test_each_setting_lets_in_what_it_says(void **state)
{
    static const struct {
        const char *setting;
        enum sp_code_file kind;
        bool starting; /* allowed while the interpreter comes up */
        bool running;
    } rows[] = {
        {"allow", SP_CODE_OTHER, true, true},
        {"allow", SP_CODE_CALLS_ANY, true, true},
        {"installed", SP_CODE_INSTALLED, true, true},
        {"installed", SP_CODE_MEMORY, true, true},
        {"installed", SP_CODE_CALLS_ANY, false, false},
        {"installed", SP_CODE_OTHER, false, false},
        {"stdlib", SP_CODE_STDLIB, true, true},
        {"stdlib", SP_CODE_SYSTEM, true, true},
        {"stdlib", SP_CODE_INSTALLED, false, false},
        {"stdlib", SP_CODE_MEMORY, false, false},
        {"stdlib", SP_CODE_CALLS_ANY, false, false},
        {"deny", SP_CODE_STDLIB, true, false},
        {"deny", SP_CODE_SYSTEM, true, false},
        {"deny", SP_CODE_LIBC, true, true},
        {"deny", SP_CODE_INSTALLED, false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[80];
        snprintf(text, sizeof text, "[imports]\nnative = \"%s\"\n", rows[i].setting);
        struct sp_policy *p = make_policy(text);
        for (int running = 0; running < 2; running++) {
            bool expected = running ? rows[i].running : rows[i].starting;
            struct sp_verdict v = sp_policy_native(p, rows[i].kind, running != 0);
            if ((v.action == SP_ALLOW) != expected)
                fail_msg("%s, kind %d, running %d", rows[i].setting, (int)rows[i].kind,
                         running);
            if (v.action == SP_DENY)
                assert_non_null(strstr(v.rule, rows[i].setting));
        }
        free(p);
    }
}

static void test_a_rule_that_names_ctypes_lets_it_in(void **state)
{
    (void)state;
    struct sp_policy *p =
        make_policy("[imports]\nnative = \"stdlib\"\nallow = [\"*\", \"ctypes\"]\n");
    assert_int_equal(sp_policy_import(p, "ctypes.util", true).action, SP_ALLOW);
    assert_int_equal(sp_policy_import(p, "_ctypes", false).action, SP_ALLOW);
    assert_int_equal(sp_policy_native(p, SP_CODE_CALLS_ANY, true).action, SP_ALLOW);
    assert_int_equal(sp_policy_import(p, "cffi", true).action, SP_DENY);
    free(p);
}

static void test_what_a_library_can_do_without_is_expected(void **state)
{
    (void)state;
    struct sp_policy *p = make_policy("[imports]\nnative = \"stdlib\"\n");
    assert_false(sp_policy_import(p, "ctypes", true).expected);
    assert_true(sp_policy_import(p, "ctypes", false).expected);
    assert_int_equal(sp_policy_import(p, "ctypesx", false).action, SP_ALLOW);
    free(p);
    p = make_policy("[imports]\nnative = \"stdlib\"\nscope = \"all\"\n");
    assert_false(sp_policy_import(p, "ctypes", false).expected);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_are_told_apart_by_where_they_lie),
        cmocka_unit_test(test_each_setting_lets_in_what_it_says),
        cmocka_unit_test(test_a_rule_that_names_ctypes_lets_it_in),
        cmocka_unit_test(test_what_a_library_can_do_without_is_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
