/* From the table of calls and the plan's features to a program.
 *
 * Order of the program: the architecture; the tree over call numbers; a block for each
 * guard in use; the returns. Jumps in BPF go forward only, and each of these only jumps
 * ahead.
 */
#include "seal/seccomp/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>

#include "seal/seccomp/bpf.h"
#include "seal/seccomp/calls.h"
#include "seal/seccomp/guard.h"

/* Calls by the ABI with 32-bit pointers carry this bit in their number. */
#define X32_BIT 0x40000000u

/* What becomes of a call: an action for those that the guard singles out. One word, so
 * that targets compare and sort as numbers. */
#define ACTION_ALLOW          0u
#define ACTION_NOTIFY         1u
#define ACTION_KILL           2u
#define ACTION_ERRNO          0x100u
#define TARGET(guard, action) ((uint32_t)(guard) << 16 | (action))
#define TARGET_GUARD(target)  ((enum sp_guard)((target) >> 16))
#define TARGET_ACTION(target) ((target) & 0xffffu)

struct labels {
    uint32_t targets[SP_LABELS_MAX];
    unsigned count;
};

static sp_bpf_ref label_of(struct labels *labels, uint32_t target)
{
    for (unsigned i = 0; i < labels->count; i++) {
        if (labels->targets[i] == target)
            return SP_BPF_LABEL(i);
    }
    SP_BUG_ON(labels->count == SP_LABELS_MAX);
    labels->targets[labels->count] = target;
    return SP_BPF_LABEL(labels->count++);
}

static uint32_t refusal(const struct sp_call_treatment *t)
{
    return t->err != 0 ? ACTION_ERRNO + t->err : ACTION_ALLOW;
}

static uint32_t action_of(const struct sp_call_treatment *t,
                          const struct sp_filter_features *features)
{
    uint32_t record =
        features->listener && features->record ? ACTION_NOTIFY : ACTION_ALLOW;
    uint32_t decide = features->listener ? ACTION_NOTIFY : refusal(t);
    switch ((enum sp_treatment)t->treatment) {
    case SP_TREAT_ALLOW:
        return ACTION_ALLOW;
    case SP_TREAT_SILENT:
        return refusal(t);
    case SP_TREAT_RECORD:
        return record;
    case SP_TREAT_ATTRIBUTE:
        return features->attributes_judged && !features->listener ? refusal(t) : record;
    case SP_TREAT_TRUNCATE:
        return features->truncation_refused ? refusal(t) : record;
    case SP_TREAT_DECIDE:
    case SP_TREAT_DENY:
        return decide;
    case SP_TREAT_SURFACE:
        return features->trace_only ? ACTION_ALLOW : decide;
    case SP_TREAT_SIGNAL:
        return features->signals_scoped ? record : decide;
    case SP_TREAT_THREAD_SIGNAL:
        return features->signals_scoped ? ACTION_ALLOW : decide;
    case SP_TREAT_TASK:
        if (features->forks_denied && !features->listener)
            return ACTION_ERRNO + EPERM;
        return features->tasks_notified || features->forks_denied ? decide
                                                                  : ACTION_ALLOW;
    case SP_TREAT_CODE:
        return features->code_notified && features->listener ? ACTION_NOTIFY
                                                             : ACTION_ALLOW;
    }
    SP_BUG_ON("unknown treatment");
    return ACTION_KILL;
}

static enum sp_guard guard_of(const struct sp_call_rule *rule,
                              const struct sp_filter_features *features)
{
    bool opens = rule->guard == SP_GUARD_OPEN || rule->guard == SP_GUARD_OPENAT;
    if (opens && features->reads_notified)
        return SP_GUARD_ALWAYS;
    if (rule->guard == SP_GUARD_CLONE && features->tasks_notified)
        return SP_GUARD_ALWAYS;
    /* Whom a message goes to stands in memory; without a listener there are no sockets that
     * take an address. */
    bool sends = rule->guard == SP_GUARD_SENDMSG || rule->guard == SP_GUARD_SENDMMSG;
    if (sends && features->network_denied && features->listener)
        return SP_GUARD_ALWAYS;
    if (rule->guard == SP_GUARD_SETSOCKOPT && features->network_judged)
        return SP_GUARD_SETSOCKOPT_JUDGED;
    if (rule->guard == SP_GUARD_CLONE && features->forks_denied)
        return SP_GUARD_CLONE_PROCESS;
    if (rule->guard == SP_GUARD_IOCTL && !features->devices_scoped)
        return SP_GUARD_IOCTL_UNLISTED;
    if (rule->guard == SP_GUARD_IOCTL && features->attributes_judged)
        return SP_GUARD_IOCTL_FILES;
    return (enum sp_guard)rule->guard;
}

static uint32_t target_of(const struct sp_call_rule *rule,
                          const struct sp_filter_features *features)
{
    const struct sp_call_treatment *treatment =
        features->network_denied ? &rule->network_denied : &rule->network_open;
    if (features->truncation_refused && rule->guard == SP_GUARD_OPEN)
        return TARGET(SP_GUARD_OPEN_EMPTIES, ACTION_ERRNO + EACCES);
    if (features->truncation_refused && rule->guard == SP_GUARD_OPENAT)
        return TARGET(SP_GUARD_OPENAT_EMPTIES, ACTION_ERRNO + EACCES);
    uint32_t action = action_of(treatment, features);
    if (action == ACTION_ALLOW)
        return TARGET(SP_GUARD_ALWAYS, ACTION_ALLOW);
    return TARGET(guard_of(rule, features), action);
}

static bool is_aarch64(const struct sp_filter_features *features)
{
#if defined(__aarch64__)
    return features->arch != SP_ARCH_X86_64;
#else
    return features->arch == SP_ARCH_AARCH64;
#endif
}

/* Targets by number; returns that of numbers in no row. */
static uint32_t fill(const struct sp_filter_features *features,
                     uint32_t targets[static SP_CALLS_MAX])
{
    static const struct sp_call_treatment unknown = {SP_CALL_UNKNOWN_TREATMENT,
                                                     SP_CALL_UNKNOWN_ERRNO};
    uint32_t otherwise = TARGET(SP_GUARD_ALWAYS, action_of(&unknown, features));
    bool aarch64 = is_aarch64(features);
    for (size_t i = 0; i < SP_CALLS_MAX; i++)
        targets[i] = otherwise;
    for (size_t i = 0; i < sp_call_rules_count; i++) {
        const struct sp_call_rule *rule = &sp_call_rules[i];
        int nr = aarch64 ? rule->nr_aarch64 : rule->nr_x86_64;
        if (nr >= 0)
            targets[nr] = target_of(rule, features);
    }
    return otherwise;
}

static void add_span(struct sp_span *spans, size_t *count, uint32_t first,
                     sp_bpf_ref target)
{
    if (*count > 0 && spans[*count - 1].target == target)
        return;
    SP_BUG_ON(*count == SP_SPANS_MAX);
    spans[(*count)++] = (struct sp_span){first, target};
}

static void add_numbers(struct sp_bpf *bpf, struct labels *labels,
                        const struct sp_filter_features *features)
{
    uint32_t targets[SP_CALLS_MAX];
    struct sp_span spans[SP_SPANS_MAX];
    size_t count = 0;
    uint32_t otherwise = fill(features, targets);
    for (uint32_t nr = 0; nr < SP_CALLS_MAX; nr++)
        add_span(spans, &count, nr, label_of(labels, targets[nr]));
    add_span(spans, &count, SP_CALLS_MAX, label_of(labels, otherwise));
    if (!is_aarch64(features))
        add_span(spans, &count, X32_BIT,
                 label_of(labels, TARGET(SP_GUARD_ALWAYS, ACTION_KILL)));
    /* -1 is what a tracer leaves of a call that it skipped. */
    add_span(spans, &count, UINT32_MAX,
             label_of(labels, TARGET(SP_GUARD_ALWAYS, ACTION_ERRNO + ENOSYS)));
    sp_bpf_load_nr(bpf);
    sp_bpf_add_tree(bpf, spans, count);
}

/* A foreign architecture is another call table (on x86-64: int 0x80, which no tracee of
 * ours has a use for). It is ended and not notified: the number means nothing to the
 * supervisor, and it must hold when there is none. */
static void add_architecture(struct sp_bpf *bpf, struct labels *labels,
                             const struct sp_filter_features *features)
{
    uint32_t arch = is_aarch64(features) ? AUDIT_ARCH_AARCH64 : AUDIT_ARCH_X86_64;
    sp_bpf_add(bpf, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch),
               SP_BPF_NEXT, SP_BPF_NEXT);
    sp_bpf_add(bpf, BPF_JMP | BPF_JEQ | BPF_K, arch, SP_BPF_NEXT,
               label_of(labels, TARGET(SP_GUARD_ALWAYS, ACTION_KILL)));
}

static void add_guards(struct sp_bpf *bpf, struct labels *labels)
{
    unsigned count = labels->count;
    for (unsigned i = 0; i < count; i++) {
        uint32_t target = labels->targets[i];
        if (TARGET_GUARD(target) == SP_GUARD_ALWAYS)
            continue;
        sp_bpf_ref hit =
            label_of(labels, TARGET(SP_GUARD_ALWAYS, TARGET_ACTION(target)));
        sp_bpf_ref miss = label_of(labels, TARGET(SP_GUARD_ALWAYS, ACTION_ALLOW));
        sp_bpf_place(bpf, i);
        sp_guard_add(bpf, TARGET_GUARD(target), hit, miss);
    }
}

static uint32_t return_value(uint32_t action)
{
    switch (action) {
    case ACTION_ALLOW:
        return SECCOMP_RET_ALLOW;
    case ACTION_NOTIFY:
        return SECCOMP_RET_USER_NOTIF;
    case ACTION_KILL:
        return SECCOMP_RET_KILL_PROCESS;
    default:
        return SECCOMP_RET_ERRNO | (action - ACTION_ERRNO);
    }
}

static void add_returns(struct sp_bpf *bpf, const struct labels *labels)
{
    for (unsigned i = 0; i < labels->count; i++) {
        if (TARGET_GUARD(labels->targets[i]) != SP_GUARD_ALWAYS)
            continue;
        sp_bpf_place(bpf, i);
        sp_bpf_add(bpf, BPF_RET | BPF_K,
                   return_value(TARGET_ACTION(labels->targets[i])), SP_BPF_NEXT,
                   SP_BPF_NEXT);
    }
}

int sp_filter_compile(const struct sp_filter_features *features,
                      struct sp_filter *ret_filter, struct sp_error *reterr)
{
    struct sp_bpf bpf;
    struct labels labels;
    bpf.count = 0;
    bpf.overflow = false;
    labels.count = 0;
    add_architecture(&bpf, &labels, features);
    add_numbers(&bpf, &labels, features);
    add_guards(&bpf, &labels);
    add_returns(&bpf, &labels);
    return sp_bpf_finish(&bpf, ret_filter, reterr);
}
