/* What each policy does with the calls that matter, one row a fact, with the reason.
 *
 * The other tests derive what they expect from the table of calls; this one says it
 * anew, so that a wrong row in the table is found.
 */
#include "requires.h"

#include <errno.h>
#include <linux/audit.h>

#include "machine.h"
#include "seal/seccomp/filter.h"

enum policy {
    TRACE,    /* trace-only, everything at hand */
    NONET,    /* no-network, everything at hand */
    JUDGED,   /* some of the network granted, everything at hand */
    OLD,      /* no-network on a kernel whose Landlock scopes nothing */
    QUIET,    /* no-network, nobody wants the record */
    READS,    /* no-network, files = "all" */
    TASKS,    /* no-network, new tasks are counted by the supervisor */
    BARE,     /* trace-only without a listener */
    BARE_NET, /* no-network without a listener */
};

static const struct sp_filter_features policies[] = {
    [TRACE] = {.trace_only = true,
               .signals_scoped = true,
               .devices_scoped = true,
               .record = true,
               .listener = true},
    [NONET] = {.network_denied = true,
               .signals_scoped = true,
               .devices_scoped = true,
               .record = true,
               .listener = true},
    [JUDGED] = {.network_denied = true,
                .network_judged = true,
                .signals_scoped = true,
                .devices_scoped = true,
                .record = true,
                .listener = true},
    [OLD] = {.network_denied = true, .record = true, .listener = true},
    [QUIET] = {.network_denied = true,
               .signals_scoped = true,
               .devices_scoped = true,
               .listener = true},
    [READS] = {.network_denied = true,
               .signals_scoped = true,
               .devices_scoped = true,
               .reads_notified = true,
               .record = true,
               .listener = true},
    [TASKS] = {.network_denied = true,
               .signals_scoped = true,
               .devices_scoped = true,
               .tasks_notified = true,
               .record = true,
               .listener = true},
    [BARE] = {.trace_only = true, .signals_scoped = true, .devices_scoped = true},
    [BARE_NET] = {.network_denied = true,
                  .signals_scoped = true,
                  .devices_scoped = true},
};

#define ALLOW     SECCOMP_RET_ALLOW
#define NOTIFY    SECCOMP_RET_USER_NOTIF
#define REFUSE(e) (SECCOMP_RET_ERRNO | (e))
#define HIGH(x)   ((uint64_t)(x) << 32)

/* Arguments not given are 0. */
static const struct row {
    enum policy policy;
    const char *call;
    uint64_t args[6];
    uint32_t expected;
    const char *why;
} rows[] = {
    /* clang-format off */
    {TRACE, "read",       {0},                ALLOW,  "data of descriptors is nobody's business"},
    {TRACE, "newfstatat", {0},                ALLOW,  "stat is never notified"},
    {TRACE, "exit",       {0},                ALLOW,  "a thread ends"},
    {TRACE, "exit_group", {0},                NOTIFY, "the only sure source of exit codes"},
    {QUIET, "exit_group", {0},                ALLOW,  "only for the record"},
    {NONET, "sandpit_call", {1},              NOTIFY, "the agent reports in"},
    {QUIET, "sandpit_call", {1},              NOTIFY, "it also asks for verdicts"},
    {BARE,  "sandpit_call", {1},              REFUSE(ENOSYS), "nobody answers"},

    {TRACE, "openat", {0, 0, 0},              ALLOW,  "read-only"},
    {TRACE, "openat", {0, 0, 02000000},       ALLOW,  "read-only, O_CLOEXEC"},
    {TRACE, "openat", {0, 0, 0200000},        ALLOW,  "O_DIRECTORY alone is not O_TMPFILE"},
    {TRACE, "openat", {0, 0, 01},             NOTIFY, "O_WRONLY"},
    {TRACE, "openat", {0, 0, 02},             NOTIFY, "O_RDWR"},
    {TRACE, "openat", {0, 0, 03},             NOTIFY, "the undocumented mode: ioctl only"},
    {TRACE, "openat", {0, 0, 0100},           NOTIFY, "O_CREAT makes a file though read-only"},
    {TRACE, "openat", {0, 0, 01000},          NOTIFY, "O_TRUNC empties one though read-only"},
    {TRACE, "openat", {0, 0, 020200000},      NOTIFY, "O_TMPFILE"},
    {TRACE, "openat", {0, 0, HIGH(1)},        ALLOW,  "flags are an int: the high half is void"},
    {TRACE, "openat", {0, 0, HIGH(1) | 1},    NOTIFY, "nor does the high half hide anything"},
    {READS, "openat", {0, 0, 0},              NOTIFY, "every open"},
    {QUIET, "openat", {0, 0, 01},             ALLOW,  "no policy denies a write yet"},
    {NONET, "openat2", {0},                   REFUSE(ENOSYS), "flags in memory; callers use openat"},
    {NONET, "truncate", {0},                  NOTIFY, "changes a file by name"},
    {NONET, "ftruncate", {0},                 ALLOW,  "needs a descriptor that may write"},
    {NONET, "fchmod", {0},                    NOTIFY, "attributes by descriptor too"},
    {NONET, "fsetxattr", {0},                 NOTIFY, "the same"},
    {NONET, "fchmodat2", {0},                 NOTIFY, "the newest sibling of chmod"},
    {NONET, "setxattrat", {0},                NOTIFY, "the newest sibling of setxattr"},
    {NONET, "file_setattr", {0},              NOTIFY, "flags of a file"},

    {TRACE, "socket", {2, 1},                 NOTIFY, "recorded"},
    {NONET, "socket", {2, 1},                 NOTIFY, "the supervisor decides on the family"},
    {BARE,  "socket", {2, 1},                 ALLOW,  "nothing to decide"},
    {BARE_NET, "socket", {2, 1},              REFUSE(EACCES), "nobody could judge its addresses"},
    {BARE_NET, "connect", {0},                REFUSE(EACCES), "the same"},
    {NONET, "connect", {0},                   NOTIFY, "denied with its address"},
    {NONET, "bind", {0},                      NOTIFY, "the same"},
    {NONET, "listen", {0},                    NOTIFY, "binds a port by itself"},
    {NONET, "accept4", {0},                   ALLOW,  "only what was allowed to listen can"},
    {JUDGED, "connect", {0},                  NOTIFY, "judged by its address"},
    {JUDGED, "sendmsg", {3, 4096, 0},         NOTIFY, "whom it goes to stands in memory"},
    {JUDGED, "sendmmsg", {3, 4096, 2, 0},     NOTIFY, "the same of each entry"},
    {JUDGED, "sendto", {3, 4096, 1, 0, 0, 0}, ALLOW,  "no address: to where it is connected"},
    {JUDGED, "sendto", {3, 4096, 1, 0, HIGH(1), 16}, NOTIFY, "an address at 4 GiB"},
    {JUDGED, "setsockopt", {3, 6, 31},        NOTIFY, "TCP_ULP makes another socket of it"},
    {JUDGED, "setsockopt", {3, 0, 4},         NOTIFY, "IP_OPTIONS: a route of its own"},
    {JUDGED, "setsockopt", {3, 1, 2},         ALLOW,  "SO_REUSEADDR"},
    {NONET, "socketpair", {1, 1},             ALLOW,  "a Unix stream pair: asyncio"},
    {NONET, "socketpair", {1, 02000001},      ALLOW,  "the same with SOCK_CLOEXEC"},
    {NONET, "socketpair", {1, 02004005},      ALLOW,  "seqpacket, CLOEXEC and NONBLOCK"},
    {NONET, "socketpair", {1, 2},             NOTIFY, "a datagram pair reaches any path socket"},
    {NONET, "socketpair", {1, 02000002},      NOTIFY, "flags do not hide it"},
    {NONET, "socketpair", {30, 5},            NOTIFY, "another family"},
    {NONET, "socketpair", {HIGH(7) | 1, 1},   ALLOW,  "the family is an int"},
    {BARE_NET, "socketpair", {1, 2},          REFUSE(EACCES), "denied all the same"},
    {NONET, "sendto", {0},                    ALLOW,  "no address: send()"},
    {NONET, "sendto", {0, 0, 0, 0, 0x1000},   NOTIFY, "an address"},
    {NONET, "sendto", {0, 0, 0, 0, HIGH(1)},  NOTIFY, "an address at a multiple of 4 GiB"},
    {NONET, "sendto", {0, 0, 0, 0x20000000},  NOTIFY, "MSG_FASTOPEN connects"},
    {NONET, "sendmsg", {0, 0, 0x4000},        NOTIFY, "whom it goes to stands in memory"},
    {NONET, "sendmsg", {0, 0, 0x20004000},    NOTIFY, "MSG_FASTOPEN among others"},
    {NONET, "sendmmsg", {0, 0, 0, 0x20000000}, NOTIFY, "the same, one argument later"},
    {BARE_NET, "sendmsg", {0, 0, 0x4000},     ALLOW,  "no socket takes an address"},
    {BARE_NET, "sendmsg", {0, 0, 0x20000000}, REFUSE(EOPNOTSUPP), "as where it is not built in"},
    {NONET, "setsockopt", {0, 6, 30},         NOTIFY, "TCP_FASTOPEN_CONNECT"},
    {NONET, "setsockopt", {0, 0, 11},         NOTIFY, "IP_RECVERR"},
    {NONET, "setsockopt", {0, 41, 26},        NOTIFY, "IPV6_V6ONLY"},
    {NONET, "setsockopt", {0, 6, 1},          ALLOW,  "TCP_NODELAY"},
    {NONET, "setsockopt", {0, 1, 30},         ALLOW,  "30 of another level"},
    {TRACE, "setsockopt", {0, 6, 30},         ALLOW,  "the network is open"},

    {NONET, "fork", {0},                      ALLOW,  "children are held as the program is"},
    {NONET, "clone", {0x3d0f00},              ALLOW,  "a thread"},
    {NONET, "clone", {0x01200011},            ALLOW,  "fork() of libc"},
    {NONET, "clone", {0x4111},                ALLOW,  "posix_spawn: shares memory, parent sleeps"},
    {NONET, "clone", {0x111},                 NOTIFY, "shares memory with a running parent"},
    {NONET, "clone", {0x10000011},            NOTIFY, "CLONE_NEWUSER"},
    {NONET, "clone", {0x20011},               NOTIFY, "CLONE_NEWNS"},
    {NONET, "clone", {0x800011},              NOTIFY, "CLONE_UNTRACED"},
    {NONET, "clone", {0x2011},                NOTIFY, "CLONE_PTRACE"},
    {TASKS, "fork", {0},                      NOTIFY, "counted"},
    {TASKS, "vfork", {0},                     NOTIFY, "counted"},
    {TASKS, "clone", {0x3d0f00},              NOTIFY, "a thread is counted too"},
    {TASKS, "clone", {0x01200011},            NOTIFY, "counted"},
    {BARE,  "clone", {0x10000011},            REFUSE(EPERM), "denied under every policy"},
    {NONET, "clone3", {0},                    REFUSE(ENOSYS), "flags in memory; libc uses clone"},
    {NONET, "unshare", {0x400},               ALLOW,  "CLONE_FILES"},
    {NONET, "unshare", {0x10000000},          NOTIFY, "CLONE_NEWUSER"},
    {NONET, "unshare", {0x80},                NOTIFY, "CLONE_NEWTIME"},
    {NONET, "setns", {0},                     NOTIFY, "denied"},
    {QUIET, "execve", {0},                    NOTIFY, "the supervisor must know the program"},
    {BARE,  "execve", {0},                    ALLOW,  "no policy denies it yet"},
    {NONET, "execveat", {0},                  NOTIFY, "the sibling"},

    {NONET, "kill", {1},                      NOTIFY, "the record; Landlock denies"},
    {NONET, "tgkill", {1},                    ALLOW,  "raise(), pthread_kill(); cannot get out"},
    {NONET, "rt_tgsigqueueinfo", {1},         NOTIFY, "rare"},
    {NONET, "pidfd_send_signal", {1},         NOTIFY, "the newest sibling of kill"},
    {OLD,   "tgkill", {1},                    NOTIFY, "nothing else keeps it inside"},
    {QUIET, "kill", {1},                      ALLOW,  "Landlock denies what must be denied"},
    {NONET, "fcntl", {0, 2},                  ALLOW,  "F_SETFD"},
    {NONET, "fcntl", {0, 8},                  NOTIFY, "F_SETOWN"},
    {NONET, "fcntl", {0, 10},                 NOTIFY, "F_SETSIG"},
    {NONET, "fcntl", {0, HIGH(1) | 15},       NOTIFY, "F_SETOWN_EX, hidden"},
    {BARE,  "fcntl", {0, 8},                  REFUSE(EPERM), "kills outsiders under any policy"},
    {TRACE, "prlimit64", {0},                 ALLOW,  "the caller's own"},
    {TRACE, "prlimit64", {HIGH(1)},           ALLOW,  "pid is an int"},
    {TRACE, "prlimit64", {1234},              NOTIFY, "RLIMIT_CPU would end the supervisor"},
    {BARE,  "prlimit64", {1234},              REFUSE(EPERM), "the same"},
    {TRACE, "setpriority", {0, 0},            ALLOW,  "the caller's own"},
    {TRACE, "setpriority", {1, 0},            NOTIFY, "PRIO_PGRP"},
    {TRACE, "setpriority", {0, 7},            NOTIFY, "another process"},
    {TRACE, "ioprio_set", {1, 0},             ALLOW,  "IOPRIO_WHO_PROCESS is 1"},
    {TRACE, "ioprio_set", {0, 0},             NOTIFY, "no such kind: not the caller"},
    {TRACE, "sched_setaffinity", {0},         ALLOW,  "the caller's own"},
    {TRACE, "sched_setaffinity", {77},        NOTIFY, "another process"},

    {NONET, "ioctl", {0, 0x5401},             ALLOW,  "TCGETS: isatty()"},
    {NONET, "ioctl", {0, 0x5412},             NOTIFY, "TIOCSTI"},
    {NONET, "ioctl", {0, HIGH(1) | 0x5412},   NOTIFY, "TIOCSTI, hidden (CVE-2019-7303)"},
    {NONET, "ioctl", {0, 0x541c},             NOTIFY, "TIOCLINUX"},
    {NONET, "ioctl", {0, 0xc0104801},         ALLOW,  "a device's own; the file decides"},
    {NONET, "ioctl", {0, 0x540e},             ALLOW,  "TIOCSCTTY: pty.fork()"},
    {OLD,   "ioctl", {0, 0x540e},             ALLOW,  "the same"},
    {OLD,   "ioctl", {0, 0xc0104801},         NOTIFY, "nothing guards devices"},
    {OLD,   "ioctl", {0, 0x5401},             ALLOW,  "known to be harmless"},
    {TRACE, "ioctl", {0, 0x5412},             NOTIFY, "nothing is typed under any policy"},

    {NONET, "prctl", {15},                    ALLOW,  "PR_SET_NAME"},
    {NONET, "prctl", {4},                     NOTIFY, "PR_SET_DUMPABLE: memory could not be read"},
    {NONET, "prctl", {59},                    NOTIFY, "PR_SET_SYSCALL_USER_DISPATCH"},
    {NONET, "prctl", {0x59616d61},            NOTIFY, "PR_SET_PTRACER"},
    {NONET, "seccomp", {2, 0},                ALLOW,  "GET_ACTION_AVAIL"},
    {NONET, "seccomp", {1, 1},                ALLOW,  "a filter of the guest's own"},
    {NONET, "seccomp", {1, 8},                REFUSE(EBUSY), "a listener: refused even when we are dead"},
    {BARE,  "seccomp", {1, 9},                REFUSE(EBUSY), "the same, other flags beside"},
    {NONET, "seccomp", {HIGH(3) | 1, HIGH(1) | 8}, REFUSE(EBUSY), "both are unsigned int"},
    {TRACE, "ptrace", {0},                    NOTIFY, "denied under every policy"},
    {TRACE, "process_vm_writev", {0},         NOTIFY, "the same"},
    {TRACE, "perf_event_open", {0},           NOTIFY, "the same"},
    {BARE,  "pidfd_getfd", {0},               REFUSE(EPERM), "the same"},
    {TRACE, "mount", {0},                     NOTIFY, "the same"},
    {TRACE, "open_tree_attr", {0},            NOTIFY, "the newest of the mount calls"},
    {TRACE, "io_uring_setup", {0},            REFUSE(ENOSYS), "calls that nobody sees"},
    {TRACE, "bpf", {0},                       ALLOW,  "trace-only denies no more than it must"},
    {NONET, "bpf", {0},                       NOTIFY, "large kernel surface"},
    {TRACE, "userfaultfd", {0},               NOTIFY, "could make the supervisor wait for ever"},
    {TRACE, "ioctl", {0, 0xaa00},             NOTIFY, "the same by /dev/userfaultfd"},
    {NONET, "keyctl", {0},                    NOTIFY, "the same"},
    {NONET, "shmget", {0},                    NOTIFY, "shared with the whole machine"},
    {BARE_NET, "shmget", {0},                 REFUSE(ENOSYS), "as where it is not built in"},
    {NONET, "personality", {0xffffffff},      ALLOW,  "the query"},
    {NONET, "personality", {0},               ALLOW,  "what it is anyway"},
    {NONET, "personality", {0x0040000},       NOTIFY, "ADDR_NO_RANDOMIZE"},
    {TRACE, "personality", {0x0040000},       ALLOW,  "trace-only"},
    {NONET, "landlock_restrict_self", {0},    ALLOW,  "self-confinement is welcome"},
    {NONET, "setuid", {0},                    ALLOW,  "the kernel refuses what matters"},
    /* clang-format on */
};

static void test_policies_do_with_calls_what_they_should(void **state)
{
    static const uint32_t arch =
#if defined(__aarch64__)
        AUDIT_ARCH_AARCH64;
#else
        AUDIT_ARCH_X86_64;
#endif
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        struct sp_filter filter;
        assert_int_equal(sp_filter_compile(&policies[row->policy], &filter, NULL), 0);
        struct seccomp_data data = {sp_filter_call_nr(row->call), arch, 0, {0}};
        if (data.nr < 0) /* not on this architecture */
            continue;
        for (int n = 0; n < 6; n++)
            data.args[n] = row->args[n];
        uint64_t got = machine_run(filter.code, filter.count, &data, NULL);
        if (got != row->expected)
            print_error("policy %d, %s(%llx, %llx, %llx): %llx for %x: %s\n",
                        row->policy, row->call, data.args[0], data.args[1],
                        data.args[2], (unsigned long long)got, row->expected, row->why);
        assert_int_equal(got, row->expected);
    }
}

static void test_numbers_to_come_are_unknown(void **state)
{
    struct sp_filter filter;
    struct seccomp_data data = {477, AUDIT_ARCH_X86_64, 0, {0}};
    struct sp_filter_features features = policies[TRACE];
    (void)state;
    features.arch = SP_ARCH_X86_64;
    assert_int_equal(sp_filter_compile(&features, &filter, NULL), 0);
    assert_int_equal(machine_run(filter.code, filter.count, &data, NULL), NOTIFY);
    features.listener = false;
    assert_int_equal(sp_filter_compile(&features, &filter, NULL), 0);
    assert_int_equal(machine_run(filter.code, filter.count, &data, NULL),
                     REFUSE(ENOSYS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policies_do_with_calls_what_they_should),
        cmocka_unit_test(test_numbers_to_come_are_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
