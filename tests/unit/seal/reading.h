/* The table of calls, read as a person would: what a filter of given features has to
 * return for a call. Shares the table with the product, but none of its code.
 */
#ifndef SP_TESTS_UNIT_SEAL_READING_H
#define SP_TESTS_UNIT_SEAL_READING_H

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

#include "seal/seccomp/calls.h"
#include "seal/seccomp/filter.h"

static inline bool reading_is_aarch64(enum sp_filter_arch arch)
{
#if defined(__aarch64__)
    return arch != SP_ARCH_X86_64;
#else
    return arch == SP_ARCH_AARCH64;
#endif
}

static inline bool reading_ioctl_dangerous(uint32_t request)
{
    return (request >= 0x125d && request <= 0x127f) ||
           (request >= 0x4c00 && request <= 0x4c0a) ||
           (request >= 0x4c80 && request <= 0x4c82) || request == 0xaa00 ||
           request == 0x5412 || request == 0x541c || request == 0x541d ||
           request == 0x5423 || request == 0x8901 || request == 0x8902 ||
           request == 0xae00 || request == 0xae01 || request == 0x400454ca ||
           request == 0xc0045877 || request == 0xc0045878 || request == 0xc0185879;
}

static inline bool reading_ioctl_harmless(uint32_t request)
{
    switch (request) {
    case 0x541b:
    case 0x5421 ... 0x5422:
    case 0x5429:
    case 0x5441:
    case 0x5450 ... 0x5452:
    case 0x5460:
    case 0x40045431:
    case 0x40049409:
    case 0x4020940d:
    case 0x402c542b ... 0x402c542d:
    case 0x80045430:
    case 0x80086601:
    case 0x802c542a:
    case 0x5401 ... 0x540b:
    case 0x540e ... 0x5411:
    case 0x5413 ... 0x5414:
    case 0x8903 ... 0x8907:
    case 0x8910 ... 0x8939:
        return true;
    default:
        return false;
    }
}

/* Whether the call is one that the guard means. */
static inline bool reading_meant(enum sp_guard guard, const __u64 *a, bool devices)
{
    uint32_t low[6];
    for (int i = 0; i < 6; i++)
        low[i] = (uint32_t)a[i];
    const uint32_t changes = 03 | 0100 | 01000 | 020000000;
    const uint32_t fastopen = 0x20000000;
    switch (guard) {
    case SP_GUARD_ALWAYS:
        return true;
    case SP_GUARD_OPEN:
        return (low[1] & changes) != 0;
    case SP_GUARD_OPENAT:
        return (low[2] & changes) != 0;
    case SP_GUARD_OPEN_EMPTIES:
        return ((low[1] & 03) == 0 || (low[1] & 03) == 3) && (low[1] & 01000) != 0;
    case SP_GUARD_OPENAT_EMPTIES:
        return ((low[2] & 03) == 0 || (low[2] & 03) == 3) && (low[2] & 01000) != 0;
    case SP_GUARD_FCNTL_OWNER:
        return low[1] == 8 || low[1] == 10 || low[1] == 15;
    case SP_GUARD_IOCTL_FILES: {
        uint32_t family = low[1] & 0xff00;
        return family == 0x6600 || family == 0x5800 || family == 0x9400 ||
               reading_ioctl_dangerous(low[1]);
    }
    case SP_GUARD_IOCTL:
    case SP_GUARD_IOCTL_UNLISTED:
        return devices ? reading_ioctl_dangerous(low[1])
                       : !reading_ioctl_harmless(low[1]);
    case SP_GUARD_SOCKETPAIR:
        return !(low[0] == 1 && ((low[1] & 0xf) == 1 || (low[1] & 0xf) == 5));
    case SP_GUARD_SENDTO:
        return a[4] != 0 || (low[3] & fastopen) != 0;
    case SP_GUARD_SENDMSG:
        return (low[2] & fastopen) != 0;
    case SP_GUARD_SENDMMSG:
        return (low[3] & fastopen) != 0;
    case SP_GUARD_SETSOCKOPT_JUDGED:
        return low[1] == 0 || low[1] == 41 ||
               (low[1] == 6 && (low[2] == 30 || low[2] == 31));
    case SP_GUARD_SETSOCKOPT:
        return low[1] == 0 || low[1] == 41 || (low[1] == 6 && low[2] == 30);
    case SP_GUARD_CLONE: {
        uint32_t forbidden = 0x7e820000 | 0x00002000;
        bool shares = (low[0] & 0x100) != 0 && (low[0] & (0x4000 | 0x10000)) == 0;
        return (low[0] & forbidden) != 0 || shares;
    }
    case SP_GUARD_CLONE_PROCESS:
        return (low[0] & (0x7e820000 | 0x00002000)) != 0 || (low[0] & 0x10000) == 0;
    case SP_GUARD_OTHER_PID:
        return low[0] != 0;
    case SP_GUARD_OTHER_PRIO:
        return !(low[0] == 0 && low[1] == 0);
    case SP_GUARD_OTHER_IOPRIO:
        return !(low[0] == 1 && low[1] == 0);
    case SP_GUARD_PRCTL:
        return low[0] == 4 || low[0] == 22 || low[0] == 28 || low[0] == 33 ||
               low[0] == 35 || low[0] == 59 || low[0] == 62 || low[0] == 0x59616d61;
    case SP_GUARD_UNSHARE:
        return (low[0] & ~(uint32_t)(0x200 | 0x400 | 0x40000)) != 0;
    case SP_GUARD_EXECUTABLE:
        return (low[2] & 4) != 0;
    case SP_GUARD_PERSONALITY:
        return low[0] != 0 && low[0] != 0xffffffff;
    case SP_GUARD_LISTENER:
        return low[0] == 1 && (low[1] & 8) != 0;
    case SP_GUARD_COUNT:
        break;
    }
    return true;
}

static inline uint32_t reading_errno(unsigned err)
{
    return err == 0 ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | err;
}

/* What becomes of a call that its guard means. */
static inline uint32_t reading_treated(struct sp_call_treatment t,
                                       const struct sp_filter_features *f)
{
    switch (t.treatment) {
    case SP_TREAT_ALLOW:
        return SECCOMP_RET_ALLOW;
    case SP_TREAT_SILENT:
        return reading_errno(t.err);
    case SP_TREAT_THREAD_SIGNAL:
        if (f->signals_scoped)
            return SECCOMP_RET_ALLOW;
        break;
    case SP_TREAT_TASK:
        if (f->forks_denied && !f->listener)
            return SECCOMP_RET_ERRNO | EPERM;
        if (!f->tasks_notified && !f->forks_denied)
            return SECCOMP_RET_ALLOW;
        break;
    case SP_TREAT_CODE:
        return f->code_notified && f->listener ? SECCOMP_RET_USER_NOTIF
                                               : SECCOMP_RET_ALLOW;
    case SP_TREAT_SURFACE:
        if (f->trace_only)
            return SECCOMP_RET_ALLOW;
        break;
    case SP_TREAT_ATTRIBUTE:
        if (f->attributes_judged && !f->listener)
            break;
        return f->listener && f->record ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;
    case SP_TREAT_TRUNCATE:
        if (f->truncation_refused)
            break;
        return f->listener && f->record ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;
    case SP_TREAT_SIGNAL:
        if (!f->signals_scoped)
            break;
        /* fall through */
    case SP_TREAT_RECORD:
        return f->listener && f->record ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;
    default:
        break;
    }
    return f->listener ? SECCOMP_RET_USER_NOTIF : reading_errno(t.err);
}

/* The row of a number, NULL if there is none. */
static inline const struct sp_call_rule *reading_row(bool aarch64, uint32_t nr)
{
    static const struct sp_call_rule *rows[2][SP_CALLS_MAX];
    static bool filled;
    for (size_t i = 0; !filled && i < sp_call_rules_count; i++) {
        const struct sp_call_rule *row = &sp_call_rules[i];
        if (row->nr_x86_64 >= 0)
            rows[0][row->nr_x86_64] = row;
        if (row->nr_aarch64 >= 0)
            rows[1][row->nr_aarch64] = row;
    }
    filled = true;
    return nr < SP_CALLS_MAX ? rows[aarch64][nr] : NULL;
}

static inline uint32_t reading_of(const struct sp_filter_features *f,
                                  const struct seccomp_data *data)
{
    bool aarch64 = reading_is_aarch64(f->arch);
    uint32_t nr = (uint32_t)data->nr;
    if (data->arch != (aarch64 ? AUDIT_ARCH_AARCH64 : AUDIT_ARCH_X86_64))
        return SECCOMP_RET_KILL_PROCESS;
    if (nr == UINT32_MAX)
        return SECCOMP_RET_ERRNO | ENOSYS;
    if (!aarch64 && nr >= 0x40000000)
        return SECCOMP_RET_KILL_PROCESS;
    const struct sp_call_rule *row = reading_row(aarch64, nr);
    if (row == NULL)
        return f->listener ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | ENOSYS;
    bool opens = row->guard == SP_GUARD_OPEN || row->guard == SP_GUARD_OPENAT;
    bool sends = row->guard == SP_GUARD_SENDMSG || row->guard == SP_GUARD_SENDMMSG;
    bool tasks = row->guard == SP_GUARD_CLONE && f->tasks_notified;
    bool every = tasks || (opens && f->reads_notified) ||
                 (sends && f->network_denied && f->listener);
    enum sp_guard guard = (enum sp_guard)row->guard;
    if (opens && f->truncation_refused) {
        guard =
            guard == SP_GUARD_OPEN ? SP_GUARD_OPEN_EMPTIES : SP_GUARD_OPENAT_EMPTIES;
        return reading_meant(guard, data->args, f->devices_scoped)
                   ? SECCOMP_RET_ERRNO | EACCES
                   : SECCOMP_RET_ALLOW;
    }
    if (guard == SP_GUARD_IOCTL && f->attributes_judged && f->devices_scoped)
        guard = SP_GUARD_IOCTL_FILES;
    if (guard == SP_GUARD_SETSOCKOPT && f->network_judged)
        guard = SP_GUARD_SETSOCKOPT_JUDGED;
    if (guard == SP_GUARD_CLONE && f->forks_denied)
        guard = SP_GUARD_CLONE_PROCESS;
    if (!every && !reading_meant(guard, data->args, f->devices_scoped))
        return SECCOMP_RET_ALLOW;
    return reading_treated(f->network_denied ? row->network_denied : row->network_open,
                           f);
}

/* The combination of features with this number; all of them are tried. */
#define READING_FEATURES 4096u
static inline struct sp_filter_features reading_features(unsigned number)
{
    return (struct sp_filter_features){
        .network_denied = number & 1,
        .trace_only = number & 2,
        .signals_scoped = number & 4,
        .devices_scoped = number & 8,
        .reads_notified = number & 16,
        .record = number & 32,
        .listener = number & 64,
        .tasks_notified = number & 256,
        .forks_denied = number & 512,
        .code_notified = number & 1024,
        .arch = number & 128 ? SP_ARCH_AARCH64 : SP_ARCH_X86_64,
        .network_judged = (number & 257) == 257,
        .attributes_judged = number & 2048,
        .truncation_refused = (number & (2048 | 64 | 4)) == 2048,
    };
}

#endif
