/* Every system call and how the filter treats it, from calls.def. */
#ifndef SP_SEAL_SECCOMP_CALLS_H
#define SP_SEAL_SECCOMP_CALLS_H

#include <stddef.h>
#include <stdint.h>

/* Numbers above this one are treated as unknown. */
#define SP_CALLS_MAX 480u

/* What happens to a call that its guard singles out; any other call passes. */
enum sp_treatment {
    /* Passes unseen. */
    SP_TREAT_ALLOW,
    /* Always the errno, unrecorded: libraries have another way. */
    SP_TREAT_SILENT,
    /* Notified to be recorded; passes where no record is wanted or no listener can be
     * had. */
    SP_TREAT_RECORD,
    /* Notified, and the supervisor decides; the errno without a listener. */
    SP_TREAT_DECIDE,
    /* Notified, recorded and denied; the errno without a listener. */
    SP_TREAT_DENY,
    /* ALLOW under trace-only, else DENY. */
    SP_TREAT_SURFACE,
    /* RECORD where Landlock keeps signals inside, else DECIDE(EPERM). */
    SP_TREAT_SIGNAL,
    /* ALLOW where Landlock keeps signals inside, else DECIDE(EPERM). */
    SP_TREAT_THREAD_SIGNAL,
    /* DECIDE where new tasks are counted by the supervisor, DENY(EPERM) where new processes
     * are denied, else ALLOW. */
    SP_TREAT_TASK,
    /* RECORD, but the errno where changes of files are judged and there is no listener: the kernel
     * has no other means to forbid them. */
    SP_TREAT_ATTRIBUTE,
    /* RECORD, but the errno where no other means keeps files from being emptied. */
    SP_TREAT_TRUNCATE,
    /* Notified where native code is restricted, else ALLOW. */
    SP_TREAT_CODE,
};

/* Which calls of a number are meant: tests of register arguments, see guard.c. */
enum sp_guard {
    SP_GUARD_ALWAYS,
    SP_GUARD_OPEN,           /* an open that can write, create or truncate */
    SP_GUARD_OPENAT,         /* the same, flags one argument later */
    SP_GUARD_OPEN_EMPTIES,   /* an open that cannot write and truncates */
    SP_GUARD_OPENAT_EMPTIES, /* the same, flags one argument later */
    SP_GUARD_FCNTL_OWNER,    /* redirects a signal */
    SP_GUARD_IOCTL,          /* a dangerous request */
    SP_GUARD_IOCTL_FILES,    /* the same, and requests about files */
    SP_GUARD_IOCTL_UNLISTED, /* a request that is not known to be harmless */
    SP_GUARD_SOCKETPAIR,     /* anything but a Unix stream or seqpacket pair */
    SP_GUARD_SENDTO,         /* has an address, or opens a connection */
    SP_GUARD_SENDMSG,        /* opens a connection (MSG_FASTOPEN) */
    SP_GUARD_SENDMMSG,       /* the same, flags one argument later */
    SP_GUARD_SETSOCKOPT, /* IP levels; makes connect and send one (TCP_FASTOPEN_CONNECT) */
    SP_GUARD_SETSOCKOPT_JUDGED, /* and what makes another socket of it (TCP_ULP) */
    SP_GUARD_CLONE,             /* namespaces, untraced or memory-sharing processes */
    SP_GUARD_CLONE_PROCESS,     /* the same, and everything that is no thread */
    SP_GUARD_OTHER_PID,    /* first argument is a process that is not 0, the caller */
    SP_GUARD_OTHER_PRIO,   /* setpriority of anything but the caller */
    SP_GUARD_OTHER_IOPRIO, /* ioprio_set of anything but the caller */
    SP_GUARD_PRCTL,        /* an option that hides the process or its calls */
    SP_GUARD_UNSHARE,      /* more than the descriptor table, the cwd, the semaphores */
    SP_GUARD_PERSONALITY,  /* changes it: neither a query nor the default */
    SP_GUARD_EXECUTABLE,   /* memory that can be executed (PROT_EXEC) */
    SP_GUARD_LISTENER,     /* a seccomp filter with a listener */
    SP_GUARD_COUNT,
};

struct sp_call_treatment {
    uint8_t treatment; /* enum sp_treatment */
    uint8_t err;       /* errno, 0: passes where it would be refused */
};

struct sp_call_rule {
    int16_t nr_x86_64;  /* -1: no such call there */
    int16_t nr_aarch64; /* the generic table */
    struct sp_call_treatment network_open;
    struct sp_call_treatment network_denied;
    uint8_t guard; /* enum sp_guard */
};

extern const struct sp_call_rule sp_call_rules[];
extern const size_t sp_call_rules_count;

/* Parallel to the rules; apart from them because only a denial needs a name. */
const char *sp_call_name(size_t index);

/* A number in no row, and every number yet to be given out: unknown calls fail closed.
 * */
#define SP_CALL_UNKNOWN_TREATMENT SP_TREAT_DENY
#define SP_CALL_UNKNOWN_ERRNO     ENOSYS

#endif
