/* What the parts of the supervisor share. Internal to src/supervise. */
#ifndef SP_SUPERVISE_SUPERVISOR_H
#define SP_SUPERVISE_SUPERVISOR_H

#include <limits.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "policy/policy.h"
#include "supervise/early.h"
#include "supervise/files.h"
#include "supervise/hosts.h"
#include "supervise/lane.h"
#include "supervise/limit_watch.h"
#include "supervise/lookups.h"
#include "supervise/parked.h"
#include "supervise/processes.h"
#include "supervise/relay.h"
#include "supervise/resolver.h"
#include "supervise/shared_memory.h"
#include "supervise/sockets.h"
#include "supervise/supervise.h"
#include "supervise/violations.h"
#include "trace/writer.h"

#define SP_LANE_PIDS 256u

enum sp_phase {
    SP_PHASE_SEALED,  /* the program's exec has not been asked for yet */
    SP_PHASE_LOADING, /* it was: the agent is to report in next */
    SP_PHASE_RUNNING,
    SP_PHASE_ENDING,
};

struct sp_supervisor {
    const struct sp_supervision *is;
    const struct sp_policy *policy;   /* in force */
    const struct sp_policy *observed; /* NULL: the rules are enforced; see observe.h */
    struct sp_trace_writer *writer;
    struct sp_guest guest;
    struct sp_lanes lanes;
    uint32_t lane_last;
    pid_t lane_pids[SP_LANE_PIDS]; /* whose the last lanes were, by their numbers */
    struct sp_processes processes;
    struct sp_relay relay;
    struct sp_sockets sockets;
    enum sp_reach reach;
    bool inet_granted; /* some INET address is: datagram sockets are real ones */
    struct sp_lookups lookups;
    struct sp_parked_calls parked;
    struct sp_resolver resolver;
    struct sp_hosts hosts;
    struct sp_files files;
    struct sp_early early;
    char withheld[PATH_MAX]; /* the file that its loader was last refused; "": none */
    struct sp_shared_memory shared_memory;
    bool grant_gone[2][SP_GRANTED_MAX]; /* readable, writable: see sp_fs_moved */
    bool grants_moved;                  /* some are */
    struct sp_violations violations;
    struct sp_violations refusals; /* under a policy that only traces */
    int listener;                  /* the guest's, while calls can come; else -1 */
    bool wakes_here; /* its kernel wakes callers where the answer comes from */
    bool call_was_first;
    int epoll; /* everything else that can come */
    int signal_fd;
    int channel; /* where there is no listener; else -1 */
    enum sp_phase phase;
    uint64_t begun_ns;    /* the program itself began, 0: not yet */
    uint64_t deadline_ns; /* of the wall limit, 0: none */
    uint64_t kept_up_ns;  /* when what goes on beside the calls was last looked after */
    struct sp_limit_watch limits;
    bool cancelled;
    bool stopped; /* by the policy, at its first violation */
    char stopped_by[SP_SENTENCE_BYTES];
    int cancel_signal;
    bool reaped;
    bool replaced;         /* the program became another one (exec) */
    const char *exited_by; /* how the program came to its own end; NULL: not known */
    int wait_status;
    struct rusage usage;
    uint32_t python_version;
    struct sp_error failure; /* code 0: none; ends the run */
    struct sp_buffer exception;
    uint64_t output_told_bytes; /* of what was printed, in `output` events */
    uint64_t output_told;       /* such events */
    bool said_start;            /* the caller was told that the run began */
};

/* One notified call, while it is being decided. */
struct sp_act_call {
    struct sp_supervisor *s;
    const struct seccomp_notif *n;
    struct sp_process *process;
    const char *asked; /* the path that it names, as written; NULL: none, or two */
    const struct sp_path *opens; /* what it opens, where that was read already */
    const char *op;              /* what events call it; NULL: not told apart */
    bool denied;                 /* a denial of it was recorded: that is its event */
    const char *sentence;        /* which says so; valid until the next one */
    bool again;     /* the same attempt as the call before: its sentence stays */
    bool observing; /* decided by the policy that is only observed */
    bool observed;  /* which denied it */
};

enum sp_answer_kind {
    SP_ANSWER_CONTINUE, /* the kernel does it */
    SP_ANSWER_RETURN,   /* not done; the call gives `value` */
    SP_ANSWER_REFUSE,   /* not done; the call fails with errno `value` */
    SP_ANSWER_GIVE, /* the call gives the descriptor `value` of ours, which is then closed */
    SP_ANSWER_GONE,  /* already answered, or nobody waits any more */
    SP_ANSWER_LATER, /* parked: answered when what it waits for has come */
};

struct sp_answer {
    enum sp_answer_kind kind;
    int64_t value;
    bool close_on_exec; /* GIVE */
    bool drain;         /* the process's lane, once the caller goes on */
};

#define SP_CONTINUE  ((struct sp_answer){.kind = SP_ANSWER_CONTINUE})
#define SP_RETURN(v) ((struct sp_answer){.kind = SP_ANSWER_RETURN, .value = (v)})
#define SP_REFUSE(e) ((struct sp_answer){.kind = SP_ANSWER_REFUSE, .value = (e)})
#define SP_GONE      ((struct sp_answer){.kind = SP_ANSWER_GONE})
#define SP_LATER     ((struct sp_answer){.kind = SP_ANSWER_LATER})

static inline uint64_t sp_supervisor_t(const struct sp_supervisor *s)
{
    return sp_clock_ns() - s->is->start_ns;
}

static inline uint64_t sp_act_arg(const struct sp_act_call *call, int i)
{
    return call->n->data.args[i];
}

/* An int argument, as the kernel reads it: the low 32 bits. */
static inline int sp_act_int(const struct sp_act_call *call, int i)
{
    return (int)(uint32_t)call->n->data.args[i];
}

/* notify.c: receives one notification and answers it. false when the listener is at its end. */
bool sp_notify(struct sp_supervisor *s);
/* Answers a call of the thread's that was received earlier. */
void sp_notify_answer(struct sp_supervisor *s, uint64_t id, pid_t tid,
                      struct sp_answer answer);
/* The process of a thread, met now if it is new; NULL when it is gone. */
struct sp_process *sp_notify_process(struct sp_supervisor *s, pid_t tid,
                                     const struct seccomp_data *data);

/* Whether the thread still waits: what was read about it was not about another one that got its
 * number. To be asked between reading and doing. */
bool sp_notify_valid(const struct sp_act_call *call);

/* The program began without its agent: an error that ends the run. */
void sp_supervisor_fail_agent(struct sp_supervisor *s);

/* The handlers, by family. Each decides one call. */
struct sp_answer sp_act_agent(struct sp_act_call *call); /* agent_acts.c */
struct sp_answer sp_act_exec(struct sp_act_call *call);  /* exec_acts.c */
struct sp_answer sp_act_fork(struct sp_act_call *call);  /* fork_acts.c */
/* Whether the call makes a process rather than a thread. */
bool sp_fork_wanted(const struct sp_act_call *call);
struct sp_answer sp_act_exit(struct sp_act_call *call);
struct sp_answer sp_act_code(struct sp_act_call *call); /* code_acts.c */
/* Looks at what the caller's process can execute, where that may not be what was judged. false: it
 * must end. */
bool sp_code_verify(struct sp_act_call *call);
/* A call by which memory becomes executable: made while a program is still being loaded. */
static inline bool sp_is_code_call(int nr)
{
    return nr == SYS_mmap || nr == SYS_mprotect || nr == SYS_pkey_mprotect;
}
struct sp_answer sp_act_open(struct sp_act_call *call); /* open_acts.c */
/* Whether the call opens, to read, what a program loader does before the program's first own
 * instruction. */
bool sp_open_of_loader(struct sp_act_call *call);
struct sp_answer sp_act_path(struct sp_act_call *call);   /* path_acts.c */
struct sp_answer sp_act_socket(struct sp_act_call *call); /* network_acts.c */
struct sp_answer sp_act_socketpair(struct sp_act_call *call);
struct sp_answer sp_act_setsockopt(struct sp_act_call *call);
struct sp_answer sp_act_task(struct sp_act_call *call);    /* tasks.c */
struct sp_answer sp_act_connect(struct sp_act_call *call); /* connect_acts.c */
struct sp_answer sp_act_bind(struct sp_act_call *call);    /* bind_acts.c */
struct sp_answer sp_act_listen(struct sp_act_call *call);
struct sp_answer sp_act_send(struct sp_act_call *call);    /* send_acts.c */
struct sp_answer sp_act_resolve(struct sp_act_call *call); /* resolve_acts.c */
struct sp_answer sp_act_kill(struct sp_act_call *call);    /* task_acts.c */
struct sp_answer sp_act_knob(struct sp_act_call *call);
struct sp_answer sp_act_fcntl(struct sp_act_call *call);
struct sp_answer sp_act_prctl(struct sp_act_call *call);
struct sp_answer sp_act_ioctl(struct sp_act_call *call);
struct sp_answer sp_act_forbidden(struct sp_act_call *call);
/* Refuses with `err` a call whose arguments cannot be read. */
struct sp_answer sp_act_unreadable(struct sp_act_call *call, int err);

/* agent_acts.c: the program runs: the record can begin. python_version 0: its agent has not
 * reported in. */
void sp_supervisor_begin(struct sp_supervisor *s, uint32_t python_version);

/* exec_acts.c: an exec that was let through has succeeded: tells of it. `agent`: it reported
 * in. Does nothing when none is pending. */
void sp_exec_confirm(struct sp_supervisor *s, struct sp_process *process, bool agent);
/* It has a child now: whether that is one of the program that it asked for, which has no agent then
 * (an agent reports in first). */
void sp_exec_look(struct sp_supervisor *s, struct sp_process *process);
/* Looks whether the pending exec of the caller's process succeeded: tells of it, as of one without
 * an agent unless the call reports in, and compares what it is now with what was let through. false:
 * it is something that the policy does not allow, and must end. */
bool sp_exec_settle(struct sp_act_call *call);

/* A process has ended: the rest of its lane, its exit event if none was written. `code` < 0:
 * not known; `signal` 0: none. */
void sp_process_ended(struct sp_supervisor *s, struct sp_process *process, int code,
                      int signal);

#endif
