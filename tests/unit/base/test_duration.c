#include "requires.h"

#include "base/duration.h"

static void test_duration_forms_are_read(void **state)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } cases[] = {
        {"1", 1000000000u},
        {"10s", 10000000000u},
        {"500ms", 500000000u},
        {"1.5", 1500000000u},
        {".5", 500000000u},
        {"2m", 120000000000u},
        {"1h", 3600000000000u},
        {"250us", 250000u},
        {"7ns", 7u},
        {"0.25ms", 250000u},
        {"1.s", 1000000000u},
        {"0.0000000019", 1u},
        {"8784h", SP_DURATION_MAX_NS},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t ns = 0;
        print_message("# %s\n", cases[i].text);
        assert_int_equal(sp_duration_parse(cases[i].text, &ns, NULL), 0);
        assert_int_equal(ns, cases[i].ns);
    }
}

static void test_duration_other_forms_are_refused(void **state)
{
    static const char *const cases[] = {
        "",
        ".",
        "s",
        "-1",
        "+1",
        " 1",
        "1 s",
        "1 ",
        "1e3",
        "0x10",
        "1.2.3",
        "1d",
        "1S",
        "inf",
        "nan",
        "0",
        "0.0s",
        "0.5ns",
        "8785h",
        "99999999999999999999",
        "18446744073709551616ns",
        "10s5",
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t ns = 42;
        struct sp_error error = {0};
        print_message("# '%s'\n", cases[i]);
        assert_int_equal(sp_duration_parse(cases[i], &ns, &error), SP_E_USAGE);
        assert_int_equal(ns, 42);
        assert_non_null(strstr(error.message, cases[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_duration_forms_are_read),
        cmocka_unit_test(test_duration_other_forms_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
