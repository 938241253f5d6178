/* What this machine can do for us, found out by trying and never by the kernel's
 * version: vendors move features between versions, and containers take them away.
 */
#ifndef SP_SYS_HOST_H
#define SP_SYS_HOST_H

#include <stdbool.h>

struct sp_host {
    /* ---- SP_HOST_LAUNCH ---- */

    /* 0: none; never above SP_LANDLOCK_ABI_MAX. */
    int landlock_abi;
    /* Why none: ENOSYS not built in, EOPNOTSUPP not in the lsm= list of the boot, EPERM
     * forbidden by a filter around us; else 0. */
    int landlock_error;
    /* seccomp user notification. At SP_HOST_LAUNCH the kernel says so; at SP_HOST_FULL
     * one was had and answered. */
    bool listener;
    /* Release and machine, as uname gives them. */
    char kernel[65];
    char arch[16];

    /* ---- tried at SP_HOST_FULL ---- */

    /* At SP_HOST_LAUNCH these are taken to be there: whoever uses one has another way
     * when it fails. SANDPIT_FORCE makes them take it. */

    /* Notified calls wait uninterrupted (5.19). */
    bool wait_killable;
    /* Wake-ups on the caller's core (6.6). */
    bool sync_wake;
    /* A descriptor is given and the call answered in one step (5.14). */
    bool addfd_send;
    /* These three on a child of ours; memory_file is /proc/PID/mem. */
    bool pidfd_getfd;
    bool process_vm_readv;
    bool memory_file;
    /* O_TMPFILE in the current folder. */
    bool tmpfile;

    /* ---- SP_HOST_FULL, otherwise 0 ---- */

    /* As the kernel reports them; nothing depends on it. */
    unsigned landlock_errata;
    /* A process without privileges may make one. */
    bool user_namespaces;
    /* A group that limits processes can be made below ours. */
    bool cgroup_writable;
};

enum sp_host_depth {
    /* What a run needs to know: three system calls. */
    SP_HOST_LAUNCH,
    /* Everything, by use, in throw-away children: for `sandpit doctor`. */
    SP_HOST_FULL,
};

/* Never fails: what cannot be found out is not there.
 *
 * For tests, SANDPIT_FORCE lowers what is found, as if the machine could do less; it
 * cannot raise anything. A list of name=value with commas: "landlock=0" to
 * "landlock=8", and "off" for `listener`, `wait_killable`, `sync_wake`, `addfd_send`,
 * `pidfd_getfd`, `process_vm_readv`, `memory_file`, `user_namespaces`, `cgroup`,
 * `tmpfile`. Anything else in it is ignored. */
void sp_host_probe(struct sp_host *ret_host, enum sp_host_depth depth);

/* Whether /proc is there, which no run can do without. */
bool sp_host_has_proc(void);

/* The effect of SANDPIT_FORCE alone; text may be NULL. */
void sp_host_lower(struct sp_host *host, const char *text);

#endif
