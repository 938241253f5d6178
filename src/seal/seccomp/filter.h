/* The seccomp filter of a run: compiled from a table (pure), loaded in the child (apply).
 *
 * `calls.def` gives every system call a row; `filter.c` turns rows and features into verdicts
 * and verdicts into BPF: a tree over ranges of equal verdict, at most SP_FILTER_MAX
 * instructions. Nothing here decides at run time; the supervisor does for what is notified.
 */
#ifndef SP_SEAL_SECCOMP_FILTER_H
#define SP_SEAL_SECCOMP_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SP_FILTER_MAX 400u

/* What the plan asks of the filter. */
struct sp_filter_features {
    bool network_denied;  /* column NN of the table */
    bool trace_only;      /* column TO: the few calls that only trace-only leaves open */
    bool signals_scoped;  /* Landlock (ABI 6) keeps signals inside: kill family not notified */
    bool devices_scoped;  /* Landlock (ABI 5) guards ioctl on devices */
    bool reads_notified;  /* [trace] files = "all": read-only opens too */
    bool record;          /* false: only what must be decided is notified (no listener for the
                             record wanted) */
    bool listener;        /* false: no listener can be had; denials are plain errnos, calls that
                             only the supervisor could decide are denied */
};

struct sp_filter {
    struct sock_filter code[SP_FILTER_MAX];
    uint16_t count;
};

/* Fails only on a bug of ours (SP_E_INTERNAL: too long). */
int sp_filter_compile(const struct sp_filter_features *features, struct sp_filter *ret_filter,
                      struct sp_error *reterr) SP_MUST_CHECK;

#endif
