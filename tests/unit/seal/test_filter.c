/* Every compiled filter against the table: all features, all numbers, arguments at the
 * edges where a careless comparison goes wrong.
 */
#include "requires.h"

#include "machine.h"
#include "reading.h"
#include "seal/seccomp/bpf.h"

/* Values of one argument; the others are 0. Each also with bits above the 31st set. */
static const uint64_t edges[] = {
    0,          1,          2,          3,          4,          5,          6,
    8,          10,         15,         17,         22,         28,         30,
    33,         35,         36,         59,         62,         63,         0x40,
    0x100,      0x111,      0x200,      0x203,      0x240,      0x241,      0x400,
    0x4111,     0x1011,     0x40600,    0x40601,    0x10100,    0x125c,     0x125d,
    0x127f,     0x1280,     0x2000,     0x3d0f00,   0x4bff,     0x4c0a,     0x5400,
    0x5401,     0x540b,     0x540c,     0x540e,     0x5412,     0x5413,     0x541b,
    0x541c,     0x541d,     0x541e,     0x5421,     0x5423,     0x5450,     0x5453,
    0x8901,     0x8902,     0xaa00,     0x8903,     0x8910,     0x8939,     0x893a,
    0xae00,     0xae01,     0xae02,     0x20000,    0x80000,    0x80241,    0x400000,
    0x410000,   0x800000,   0x01200011, 0x02000000, 0x10000000, 0x20000000, 0x40000000,
    0x7fffffff, 0x80000000, 0x400454ca, 0x40045431, 0x80045430, 0x802c542a, 0xc0045876,
    0xc0045877, 0xc0185879, 0x59616d61, 0x59616d62, 0xfffffffe, 0xffffffff,
};
#define EDGES (sizeof(edges) / sizeof(edges[0]))

static void compile(unsigned number, struct sp_filter_features *ret_features,
                    struct sp_filter *ret_filter)
{
    *ret_features = reading_features(number);
    assert_int_equal(sp_filter_compile(ret_features, ret_filter, NULL), 0);
}

static void agree(const struct sp_filter_features *features,
                  const struct sp_filter *filter, const struct seccomp_data *data)
{
    uint64_t got = machine_run(filter->code, filter->count, data, NULL);
    uint32_t expected = reading_of(features, data);
    if (got == expected)
        return;
    print_error("call %d of %08x, arguments %llx %llx %llx %llx %llx: %llx for %x\n",
                data->nr, data->arch, data->args[0], data->args[1], data->args[2],
                data->args[3], data->args[4], (unsigned long long)got, expected);
    fail();
}

static uint32_t arch_of(const struct sp_filter_features *features)
{
    return features->arch == SP_ARCH_AARCH64 ? AUDIT_ARCH_AARCH64 : AUDIT_ARCH_X86_64;
}

/* One argument at every edge, the others 0 or all bits set. */
static void agree_at_edges(const struct sp_filter_features *features,
                           const struct sp_filter *filter, uint32_t nr)
{
    static const uint64_t above[] = {0, UINT64_C(1) << 32, UINT64_C(0xffffffff) << 32};
    for (unsigned argument = 0; argument < 6; argument++) {
        for (size_t edge = 0; edge < EDGES; edge++) {
            for (size_t i = 0; i < 3; i++) {
                struct seccomp_data data = {(int)nr, arch_of(features), 0, {0}};
                data.args[argument] = edges[edge] | above[i];
                agree(features, filter, &data);
            }
        }
    }
}

/* Two arguments together, for the guards that look at two. */
static void agree_at_pairs(const struct sp_filter_features *features,
                           const struct sp_filter *filter, uint32_t nr)
{
    static const uint64_t few[] = {0,  1,  2,    5,     6,          8,
                                   10, 30, 0x80, 0x801, 0x20000000, UINT64_C(1) << 32};
    const size_t count = sizeof(few) / sizeof(few[0]);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            for (unsigned first = 0; first < 5; first++) {
                struct seccomp_data data = {(int)nr, arch_of(features), 0, {0}};
                data.args[first] = few[i];
                data.args[first + 1] = few[j];
                agree(features, filter, &data);
            }
        }
    }
}

static void test_every_call_and_argument_is_treated_as_the_table_says(void **state)
{
    (void)state;
    for (unsigned number = 0; number < READING_FEATURES; number++) {
        struct sp_filter_features features;
        struct sp_filter filter;
        compile(number, &features, &filter);
        for (uint32_t nr = 0; nr < 1024; nr++) {
            struct seccomp_data none = {(int)nr, arch_of(&features), 0, {0}};
            const struct sp_call_rule *row =
                reading_row(features.arch == SP_ARCH_AARCH64, nr);
            agree(&features, &filter, &none);
            if (row == NULL || row->guard == SP_GUARD_ALWAYS)
                continue;
            agree_at_edges(&features, &filter, nr);
            agree_at_pairs(&features, &filter, nr);
        }
    }
}

/* Arguments do not matter where no guard looks at them. */
static void test_calls_without_a_guard_ignore_their_arguments(void **state)
{
    (void)state;
    for (unsigned number = 0; number < READING_FEATURES; number += 37) {
        struct sp_filter_features features;
        struct sp_filter filter;
        compile(number, &features, &filter);
        for (uint32_t nr = 0; nr < 1024; nr++)
            agree_at_edges(&features, &filter, nr);
    }
}

static void test_numbers_beyond_the_table(void **state)
{
    static const uint32_t numbers[] = {
        SP_CALLS_MAX - 1, SP_CALLS_MAX, 1023,       4095,       65536,
        0x3fffffff,       0x40000000,   0x40000001, 0x40000203, 0x7fffffff,
        0x80000000,       0xbfffffff,   0xc0000000, 0xfffffffe, 0xffffffff,
    };
    (void)state;
    for (unsigned number = 0; number < READING_FEATURES; number++) {
        struct sp_filter_features features;
        struct sp_filter filter;
        compile(number, &features, &filter);
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
            struct seccomp_data data = {(int)numbers[i], arch_of(&features), 0, {0}};
            agree(&features, &filter, &data);
        }
    }
}

static void test_any_foreign_architecture_ends_the_process(void **state)
{
    static const uint32_t foreign[] = {AUDIT_ARCH_I386,
                                       AUDIT_ARCH_ARM,
                                       0,
                                       UINT32_MAX,
                                       AUDIT_ARCH_X86_64 & ~__AUDIT_ARCH_LE,
                                       AUDIT_ARCH_PPC64LE};
    (void)state;
    for (unsigned number = 0; number < READING_FEATURES; number++) {
        struct sp_filter_features features;
        struct sp_filter filter;
        compile(number, &features, &filter);
        for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
            for (int nr = -1; nr < 500; nr++) {
                struct seccomp_data data = {nr, foreign[i], 0, {0}};
                assert_int_equal(machine_run(filter.code, filter.count, &data, NULL),
                                 SECCOMP_RET_KILL_PROCESS);
            }
        }
    }
}

/* Above an allowed call stands a path of at most this many instructions. */
#define STEPS_MAX 22u

static void test_filters_are_short_and_shallow(void **state)
{
    unsigned longest = 0;
    unsigned deepest = 0;
    (void)state;
    for (unsigned number = 0; number < READING_FEATURES; number++) {
        struct sp_filter_features features;
        struct sp_filter filter;
        compile(number, &features, &filter);
        longest = filter.count > longest ? filter.count : longest;
        for (int nr = 0; nr < (int)SP_CALLS_MAX; nr++) {
            struct seccomp_data data = {nr, arch_of(&features), 0, {0}};
            unsigned steps = 0;
            machine_run(filter.code, filter.count, &data, &steps);
            deepest = steps > deepest ? steps : deepest;
        }
    }
    print_message("# longest %u instructions, deepest %u steps\n", longest, deepest);
    assert_in_range(longest, 1, SP_FILTER_MAX);
    assert_in_range(deepest, 1, STEPS_MAX);
}

/* A program that does not fit is an error and not a shorter program. */
static void test_a_program_that_is_too_long_is_refused(void **state)
{
    static struct sp_bpf bpf;
    static struct sp_filter filter;
    struct sp_error error = {0};
    (void)state;
    for (unsigned i = 0; i <= SP_FILTER_MAX; i++)
        sp_bpf_add(&bpf, BPF_RET | BPF_K, 0, SP_BPF_NEXT, SP_BPF_NEXT);
    assert_int_equal(sp_bpf_finish(&bpf, &filter, &error), SP_E_INTERNAL);
    assert_int_equal(error.code, SP_E_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_call_and_argument_is_treated_as_the_table_says),
        cmocka_unit_test(test_calls_without_a_guard_ignore_their_arguments),
        cmocka_unit_test(test_numbers_beyond_the_table),
        cmocka_unit_test(test_any_foreign_architecture_ends_the_process),
        cmocka_unit_test(test_filters_are_short_and_shallow),
        cmocka_unit_test(test_a_program_that_is_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
