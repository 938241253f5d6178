/* The same rules by two hands: a part of the table given to libseccomp, its filter and
 * ours run on the same calls.
 *
 * The part is what libseccomp can say: rows without a guard, and guards that test bits
 * of one int. Its release may not know the newest calls; those are left out. Not linked
 * into the product: see tree.c and filter.h for why we make our own.
 */
#include "requires.h"

#ifdef SP_WITH_LIBSECCOMP

#include <seccomp.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/scope.h"
#include "machine.h"
#include "reading.h"

#define PROGRAM_MAX 4096u

struct program {
    struct sock_filter code[PROGRAM_MAX];
    size_t count;
};

/* The argument and the bits that a guard tests; 0 bits: not a guard of this kind. */
static uint32_t bits_of(enum sp_guard guard, unsigned *ret_argument)
{
    switch (guard) {
    case SP_GUARD_OPEN:
        *ret_argument = 1;
        return 03 | 0100 | 01000 | 020000000;
    case SP_GUARD_OPENAT:
        *ret_argument = 2;
        return 03 | 0100 | 01000 | 020000000;
    case SP_GUARD_SENDMSG:
        *ret_argument = 2;
        return 0x20000000;
    case SP_GUARD_SENDMMSG:
        *ret_argument = 3;
        return 0x20000000;
    case SP_GUARD_OTHER_PID:
        *ret_argument = 0;
        return UINT32_MAX;
    case SP_GUARD_UNSHARE:
        *ret_argument = 0;
        return ~(uint32_t)(0x200 | 0x400 | 0x40000);
    default:
        return 0;
    }
}

static uint32_t action_of(uint32_t returned)
{
    if ((returned & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
        return SCMP_ACT_ERRNO(returned & SECCOMP_RET_DATA);
    return returned == SECCOMP_RET_ALLOW ? SCMP_ACT_ALLOW : SCMP_ACT_NOTIFY;
}

/* Gives one row to libseccomp, whose default is to notify; whether it could. */
static bool give(scmp_filter_ctx ctx, size_t index,
                 const struct sp_filter_features *features)
{
    const struct sp_call_rule *row = &sp_call_rules[index];
    int nr = reading_is_aarch64(SP_ARCH_NATIVE) ? row->nr_aarch64 : row->nr_x86_64;
    unsigned argument = 0;
    bool sends = row->guard == SP_GUARD_SENDMSG || row->guard == SP_GUARD_SENDMMSG;
    bool always = row->guard == SP_GUARD_ALWAYS ||
                  (sends && features->network_denied && features->listener);
    uint32_t bits = always ? 0 : bits_of(row->guard, &argument);
    if (nr < 0 || (!always && bits == 0) ||
        seccomp_syscall_resolve_name(sp_call_name(index)) != nr)
        return false;
    struct sp_call_treatment treatment =
        features->network_denied ? row->network_denied : row->network_open;
    uint32_t meant = action_of(reading_treated(treatment, features));
    bool guarded = bits != 0 && meant != SCMP_ACT_ALLOW;
    if (!guarded)
        return meant == SCMP_ACT_NOTIFY || seccomp_rule_add(ctx, meant, nr, 0) == 0;
    /* Bits that are not set pass; the rest falls to the default, or to one errno. */
    assert_int_equal(
        seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 1,
                         SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, (uint64_t)bits, 0)),
        0);
    return meant == SCMP_ACT_NOTIFY;
}

static void export(scmp_filter_ctx ctx, struct program *ret_program)
{
    sp_auto_fd fd = memfd_create("filter", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(seccomp_export_bpf(ctx, fd), 0);
    ssize_t size = pread(fd, ret_program->code, sizeof(ret_program->code), 0);
    assert_in_range(size, 1, sizeof(ret_program->code) - 1);
    ret_program->count = (size_t)size / sizeof(ret_program->code[0]);
}

static void compare(const struct sp_filter *ours, const struct program *theirs, int nr)
{
    static const uint64_t values[] = {
        0,          1,
        2,          3,
        0x40,       0x80,
        0x100,      0x200,
        0x400,      0x40600,
        0x40000,    0x80000,
        0x400000,   0x410000,
        0x10000000, 0x20000000,
        0x20004000, 0x80000000,
        0xffffffff, UINT64_C(1) << 32,
        UINT64_MAX, (UINT64_C(1) << 32) + 0x20000000,
    };
    for (unsigned argument = 0; argument < 6; argument++) {
        for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
            struct seccomp_data data = {nr, 0, 0, {0}};
            data.arch = seccomp_arch_native();
            data.args[argument] = values[i];
            uint64_t a = machine_run(ours->code, ours->count, &data, NULL);
            uint64_t b = machine_run(theirs->code, theirs->count, &data, NULL);
            if (a != b)
                print_error(
                    "call %d, argument %u is %llx: ours %llx, libseccomp %llx\n", nr,
                    argument, data.args[argument], (unsigned long long)a,
                    (unsigned long long)b);
            assert_int_equal(a, b);
        }
    }
}

static unsigned compare_all(struct sp_filter_features features)
{
    static struct program theirs;
    static struct sp_filter ours;
    bool given[SP_CALLS_MAX] = {false};
    unsigned count = 0;
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_NOTIFY);
    assert_non_null(ctx);
    for (size_t i = 0; i < sp_call_rules_count; i++) {
        if (give(ctx, i, &features))
            given[sp_filter_call_nr(sp_call_name(i))] = true;
    }
    export(ctx, &theirs);
    seccomp_release(ctx);
    assert_int_equal(sp_filter_compile(&features, &ours, NULL), 0);
    for (int nr = 0; nr < (int)SP_CALLS_MAX; nr++) {
        if (!given[nr])
            continue;
        compare(&ours, &theirs, nr);
        count++;
    }
    print_message("# %u calls; %u instructions, libseccomp %zu for these alone\n",
                  count, ours.count, theirs.count);
    return count;
}

static void test_libseccomp_agrees(void **state)
{
    (void)state;
    for (unsigned number = 0; number < 128; number++) {
        struct sp_filter_features features = reading_features(number);
        features.arch = SP_ARCH_NATIVE;
        if (!features.listener || features.reads_notified || !features.record)
            continue;
        assert_in_range(compare_all(features), 250, SP_CALLS_MAX);
    }
}

#else

static void test_libseccomp_agrees(void **state)
{
    (void)state;
    sp_test_requires("libseccomp", false);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_libseccomp_agrees)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
