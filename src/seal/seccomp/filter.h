/* The seccomp filter of a run: compiled from a table (pure), loaded in the child
 * (load.h).
 *
 * `calls.def` gives every system call a row; `filter.c` turns rows and features into
 * targets and targets into BPF: a tree over ranges of equal target, at most
 * SP_FILTER_MAX instructions. Nothing here decides at run time; the supervisor does for
 * what is notified.
 */
#ifndef SP_SEAL_SECCOMP_FILTER_H
#define SP_SEAL_SECCOMP_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Below 256 every jump is in reach of BPF's 8-bit offsets. What costs start-up time is
 * less the length than the longest path: at loading, the kernel walks the program once
 * for each call number (a chain of 100 takes four times as long as our tree of 200). */
#define SP_FILTER_MAX 250u

enum sp_filter_arch {
    SP_ARCH_NATIVE, /* the one this program is built for */
    SP_ARCH_X86_64,
    SP_ARCH_AARCH64,
};

/* What the plan asks of the filter. */
struct sp_filter_features {
    /* The table's second column, else the first. */
    bool network_denied;
    /* With network_denied: some of it is granted, and the supervisor judges each act. */
    bool network_judged;
    /* Leaves open the few calls that only trace-only leaves open. */
    bool trace_only;
    /* Landlock (ABI 6) keeps signals inside: those to threads are not notified, the
     * others only for the record. */
    bool signals_scoped;
    /* Landlock (ABI 5) guards ioctl on devices, or the policy leaves devices alone: a
     * list of dangerous requests is notified; else all but a list of harmless ones are.
     * */
    bool devices_scoped;
    /* [trace] files = "all": read-only opens too. */
    bool reads_notified;
    /* New tasks are notified: nothing else here can count them. A call that a signal
     * interrupts before it is looked at fails with EINTR, so that it is the last resort. */
    bool tasks_notified;
    /* Requests that set attributes of files are notified. */
    bool attributes_judged;
    /* Without a listener: what empties a file and needs no right to write is refused, as Landlock
     * (below ABI 3) does not guard it. */
    bool truncation_refused;
    /* New processes are denied, threads are not. */
    bool forks_denied;
    /* Memory that can be executed is notified as it is mapped. */
    bool code_notified;
    /* false: what would be notified only to be recorded is not; what the supervisor
     * decides or denies still is. */
    bool record;
    /* false: no listener can be had. Denials are plain errnos, what was for the record
     * passes, and what only the supervisor could decide is refused: where the network
     * is denied no socket is made. */
    bool listener;
    enum sp_filter_arch arch;
};

struct sp_filter {
    struct sock_filter code[SP_FILTER_MAX];
    uint16_t count;
};

/* Fails only on a bug of ours (SP_E_INTERNAL: too long). */
int sp_filter_compile(const struct sp_filter_features *features,
                      struct sp_filter *ret_filter, struct sp_error *reterr)
    SP_MUST_CHECK;

/* The name of a system call of this machine, NULL if its number is not known; and back,
 * -1 if the name is not known or has no number here. */
const char *sp_filter_call_name(int nr);
int sp_filter_call_nr(const char *name);

#endif
