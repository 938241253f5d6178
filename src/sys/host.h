/* What this machine can do for us, found out by trying and never by the kernel's
 * version: vendors move features between versions, and containers take them away.
 */
#ifndef SP_SYS_HOST_H
#define SP_SYS_HOST_H

#include <stdbool.h>

struct sp_host {
    /* SP_HOST_LAUNCH */
    int landlock_abi;     /* 0: none; never above SP_LANDLOCK_ABI_MAX */
    int landlock_error;   /* why none: ENOSYS not built in, EOPNOTSUPP not in the lsm= list of
                             the boot, EPERM forbidden by a filter around us; else 0 */
    bool listener;        /* seccomp user notification. At SP_HOST_LAUNCH: the kernel says
                             so; at SP_HOST_FULL: one was had and answered */
    char kernel[65];      /* uname: release and machine */
    char arch[16];

    /* SP_HOST_FULL; false (0) otherwise */
    unsigned landlock_errata; /* as the kernel reports them; for the report only */
    bool wait_killable;    /* notified calls wait uninterrupted (5.19) */
    bool sync_wake;        /* wake-ups on the caller's core (6.6) */
    bool addfd_send;       /* a descriptor is given and the call answered in one step (5.14) */
    bool pidfd_getfd;      /* on a child of ours */
    bool process_vm_readv; /* on a child of ours */
    bool memory_file;      /* /proc/PID/mem of a child of ours can be read */
    bool user_namespaces;  /* an unprivileged process may make one */
    bool cgroup_writable;  /* a group can be made below ours */
    bool tmpfile;          /* O_TMPFILE in the current folder */
};

enum sp_host_depth {
    SP_HOST_LAUNCH, /* what a run needs to know: three system calls */
    SP_HOST_FULL,   /* everything, by use, in throw-away children: for `sandpit doctor` */
};

/* Never fails: what cannot be found out is not there.
 *
 * For tests, SANDPIT_FORCE lowers what is found, as if the machine could do less; it
 * cannot raise anything. A list of name=value with commas: "landlock=0" to
 * "landlock=8", and "off" for `listener`, `wait_killable`, `sync_wake`, `addfd_send`,
 * `pidfd_getfd`, `process_vm_readv`, `memory_file`, `user_namespaces`, `cgroup`,
 * `tmpfile`. Anything else in it is ignored. */
void sp_host_probe(struct sp_host *ret_host, enum sp_host_depth depth);

/* The effect of SANDPIT_FORCE alone; text may be NULL. */
void sp_host_lower(struct sp_host *host, const char *text);

#endif
