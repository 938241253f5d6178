#include "requires.h"

#include "base/size.h"

static void test_size_forms_are_read(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"1", 1u},
        {"700B", 700u},
        {"64MiB", 64u << 20},
        {"512M", 512u << 20},
        {"1GiB", 1u << 30},
        {"1.5G", 3u << 29},
        {"2T", UINT64_C(2) << 40},
        {"3TiB", UINT64_C(3) << 40},
        {"10kB", 10000u},
        {"10MB", 10000000u},
        {"2GB", 2000000000u},
        {"1TB", UINT64_C(1000000000000)},
        {"1048576T", SP_SIZE_MAX_BYTES},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t bytes = 0;
        print_message("# %s\n", cases[i].text);
        assert_int_equal(sp_size_parse(cases[i].text, &bytes, NULL), 0);
        assert_int_equal(bytes, cases[i].bytes);
    }
}

static void test_size_other_forms_are_refused(void **state)
{
    static const char *const cases[] = {
        "",
        ".",
        "M",
        "-1",
        "+1",
        " 1",
        "1 M",
        "1 ",
        "1e3",
        "0x10",
        "1.2.3G",
        "1X",
        "512m",
        "0.2B",
        "inf",
        "nan",
        "0",
        "0.0K",
        "1048577T",
        "99999999999999999999",
        "18446744073709551616",
        "10M5",
        "1MiBs",
        "1Mi",
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t bytes = 77;
        struct sp_error error = {0};
        print_message("# '%s'\n", cases[i]);
        assert_int_equal(sp_size_parse(cases[i], &bytes, &error), SP_E_USAGE);
        assert_int_equal(bytes, 77);
        assert_non_null(strstr(error.message, cases[i]));
    }
}

static void test_size_is_told(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {700, "700 bytes"},
        {1024, "1 KiB"},
        {64u << 20, "64 MiB"},
        {3u << 29, "1.5 GiB"},
        {1234567, "1.177 MiB"},
        {UINT64_C(5) << 40, "5 TiB"},
        {UINT64_C(1) << 60, "1.049e+06 TiB"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        sp_size_text(cases[i].bytes, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size_forms_are_read),
        cmocka_unit_test(test_size_other_forms_are_refused),
        cmocka_unit_test(test_size_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
