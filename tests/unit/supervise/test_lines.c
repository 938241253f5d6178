#include "requires.h"

#include <stdlib.h>

#include "supervise/lines.h"

static void test_lines_numbers(void **state)
{
    const uint8_t table[] = {0, 1, 8, 2, 6, 0xff};
    (void)state;
    assert_int_equal(sp_lines_numbers(table, sizeof table, 10, 0), 11);
    assert_int_equal(sp_lines_numbers(table, sizeof table, 10, 7), 11);
    assert_int_equal(sp_lines_numbers(table, sizeof table, 10, 8), 13);
    assert_int_equal(sp_lines_numbers(table, sizeof table, 10, 14), 12);
}

static void test_lines_table(void **state)
{
    const uint8_t table[] = {4, 0, 6, 2, 2, 0x80, 4, 0xff};
    (void)state;
    assert_int_equal(sp_lines_table(table, sizeof table, 10, 0), 10);
    assert_int_equal(sp_lines_table(table, sizeof table, 10, 4), 12);
    assert_int_equal(sp_lines_table(table, sizeof table, 10, 10), 0);
    assert_int_equal(sp_lines_table(table, sizeof table, 10, 12), 11);
    assert_int_equal(sp_lines_table(table, sizeof table, 10, 16), 0);
}

static void test_lines_locations(void **state)
{
    const uint8_t table[] = {
        0x80 | 11 << 3 | 1, 0,        0,          /* two units, one line on */
        0x80 | 0 << 3 | 0,  0,                    /* one unit, the same line */
        0x80 | 13 << 3 | 0, 5,                    /* one unit, two lines back */
        0x80 | 15 << 3 | 0,                       /* one unit without a line */
        0x80 | 14 << 3 | 2, 0x40 | 0, 2, 0, 1, 1, /* three units, 64 lines on */
    };
    (void)state;
    assert_int_equal(sp_lines_locations(table, sizeof table, 10, 0), 11);
    assert_int_equal(sp_lines_locations(table, sizeof table, 10, 2), 11);
    assert_int_equal(sp_lines_locations(table, sizeof table, 10, 3), 9);
    assert_int_equal(sp_lines_locations(table, sizeof table, 10, 4), 0);
    assert_int_equal(sp_lines_locations(table, sizeof table, 10, 5), 73);
    assert_int_equal(sp_lines_locations(table, sizeof table, 10, 8), 0);
}

static void test_lines_noise_is_harmless(void **state)
{
    uint8_t table[64];
    (void)state;
    srandom(1);
    for (int round = 0; round < 20000; round++) {
        for (size_t i = 0; i < sizeof table; i++)
            table[i] = (uint8_t)random();
        size_t size = (size_t)random() % sizeof table;
        uint64_t at = (uint64_t)random() % 200;
        assert_true(sp_lines_numbers(table, size, 1, at) >= 0);
        assert_true(sp_lines_table(table, size, 1, at) >= 0);
        assert_true(sp_lines_locations(table, size, 1, at) >= 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_numbers),
        cmocka_unit_test(test_lines_table),
        cmocka_unit_test(test_lines_locations),
        cmocka_unit_test(test_lines_noise_is_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
