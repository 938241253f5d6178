#include "requires.h"

#include <stdint.h>
#include <stdlib.h>

#include "read/pair_map.h"

#define NUMBERS 64u
#define STEPS   200000u

static void test_pair_map_keeps_what_was_not_removed(void **state)
{
    (void)state;
    static int values[NUMBERS][NUMBERS];
    static bool there[NUMBERS][NUMBERS];
    struct sp_pair_map m;
    size_t count = 0;
    uint64_t random = 1;
    sp_pair_map_init(&m);
    for (unsigned step = 0; step < STEPS; step++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        const unsigned a = (unsigned)(random >> 40) % NUMBERS;
        const unsigned b = (unsigned)(random >> 50) % NUMBERS;
        const int64_t first = (int64_t)a * 1000 - 7;
        const int64_t second = INT64_MAX - b;
        void *expected = there[a][b] ? &values[a][b] : NULL;
        assert_ptr_equal(sp_pair_map_get(&m, first, second), expected);
        if (there[a][b])
            sp_pair_map_remove(&m, first, second);
        else
            assert_true(sp_pair_map_add(&m, first, second, &values[a][b]));
        there[a][b] = !there[a][b];
        count += there[a][b] ? 1 : SIZE_MAX;
        assert_int_equal(m.count, count);
    }
    for (unsigned a = 0; a < NUMBERS; a++)
        for (unsigned b = 0; b < NUMBERS; b++)
            assert_ptr_equal(sp_pair_map_get(&m, (int64_t)a * 1000 - 7, INT64_MAX - b),
                             there[a][b] ? &values[a][b] : NULL);
    sp_pair_map_release(&m);
}

static void test_pair_map_without_pairs_has_none(void **state)
{
    (void)state;
    struct sp_pair_map m;
    sp_pair_map_init(&m);
    assert_null(sp_pair_map_get(&m, 1, 2));
    sp_pair_map_remove(&m, 1, 2);
    sp_pair_map_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair_map_keeps_what_was_not_removed),
        cmocka_unit_test(test_pair_map_without_pairs_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
