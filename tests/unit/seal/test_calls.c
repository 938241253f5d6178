/* The table of calls: complete, without repeats, with the kernel's own numbers. */
#include "requires.h"

#include <ctype.h>
#include <stdio.h>

#include "ring/ring.h"
#include "seal/seccomp/calls.h"
#include "seal/seccomp/filter.h"

static int number(size_t index, bool aarch64)
{
    return aarch64 ? sp_call_rules[index].nr_aarch64 : sp_call_rules[index].nr_x86_64;
}

static void test_no_number_and_no_name_stands_twice(void **state)
{
    (void)state;
    for (size_t i = 0; i < sp_call_rules_count; i++) {
        assert_true(number(i, false) >= 0 || number(i, true) >= 0);
        assert_in_range(number(i, false) + 1, 0, SP_CALLS_MAX);
        assert_in_range(number(i, true) + 1, 0, SP_CALLS_MAX);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(sp_call_name(i), sp_call_name(j));
            if (number(i, false) >= 0)
                assert_int_not_equal(number(i, false), number(j, false));
            if (number(i, true) >= 0)
                assert_int_not_equal(number(i, true), number(j, true));
        }
    }
}

/* Calls that were given out in order on every architecture have one number. */
static void test_numbers_agree_where_all_architectures_do(void **state)
{
    (void)state;
    for (size_t i = 0; i < sp_call_rules_count; i++) {
        if (number(i, false) >= 424 && number(i, true) >= 0)
            assert_int_equal(number(i, false), number(i, true));
    }
}

static void test_no_gap_among_the_newer_calls(void **state)
{
    (void)state;
    for (int nr = 424; nr <= 471; nr++) {
        bool found = false;
        for (size_t i = 0; i < sp_call_rules_count; i++)
            found = found || number(i, false) == nr;
        print_message("# %d\n", nr);
        assert_int_equal(found, true);
    }
}

/* The call between agent and supervisor is in the table, is not a real one, and is
 * always notified. */
static void test_our_own_call_has_its_row(void **state)
{
    (void)state;
    assert_string_equal(sp_filter_call_name(SP_CALL_NR), "sandpit_call");
    assert_int_equal(sp_filter_call_nr("sandpit_call"), SP_CALL_NR);
}

static void test_names_are_found_and_unknown_ones_are_not(void **state)
{
    (void)state;
    assert_string_equal(sp_filter_call_name(sp_filter_call_nr("openat")), "openat");
    assert_string_equal(
        sp_filter_call_name(sp_filter_call_nr("landlock_create_ruleset")),
        "landlock_create_ruleset");
    assert_null(sp_filter_call_name(-1));
    assert_null(sp_filter_call_name(400));
    assert_null(sp_filter_call_name(100000));
    assert_int_equal(sp_filter_call_nr("nothing"), -1);
}

/* Compares with a header that defines __NR_NAME; how many calls it names. */
static unsigned compare(const char *path, bool aarch64)
{
    FILE *header = fopen(path, "re");
    sp_test_requires("kernel-headers", header != NULL);
    char line[256];
    unsigned count = 0;
    while (fgets(line, sizeof(line), header) != NULL) {
        char name[64];
        int nr;
        if (sscanf(line, "#define __NR_%63[a-z0-9_] %d", name, &nr) != 2 &&
            sscanf(line, "#define __NR3264_%63[a-z0-9_] %d", name, &nr) != 2)
            continue;
        if (strcmp(name, "syscalls") == 0 ||
            strcmp(name, "arch_specific_syscall") == 0 ||
            strcmp(name, "tuxcall") == 0 || strcmp(name, "sync_file_range2") == 0)
            continue;
        if (nr >= 403 && nr <= 423) /* 64-bit times on 32-bit machines */
            continue;
        if (strcmp(name, "fstatat") == 0) /* what the header calls it before choosing */
            strcpy(name, "newfstatat");
        print_message("# %s %d\n", name, nr);
        size_t i = 0;
        while (i < sp_call_rules_count && strcmp(sp_call_name(i), name) != 0)
            i++;
        assert_in_range(i, 0, sp_call_rules_count - 1);
        assert_int_equal(number(i, aarch64), nr);
        count++;
    }
    fclose(header);
    return count;
}

static void test_numbers_are_those_of_the_x86_64_header(void **state)
{
    (void)state;
    assert_true(compare("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", false) > 300);
}

static void test_numbers_are_those_of_the_generic_header(void **state)
{
    (void)state;
    assert_true(compare("/usr/include/asm-generic/unistd.h", true) > 250);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_number_and_no_name_stands_twice),
        cmocka_unit_test(test_numbers_agree_where_all_architectures_do),
        cmocka_unit_test(test_no_gap_among_the_newer_calls),
        cmocka_unit_test(test_our_own_call_has_its_row),
        cmocka_unit_test(test_names_are_found_and_unknown_ones_are_not),
        cmocka_unit_test(test_numbers_are_those_of_the_x86_64_header),
        cmocka_unit_test(test_numbers_are_those_of_the_generic_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
