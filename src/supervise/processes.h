/* The processes of a run, as far as they have shown themselves.
 *
 * Nothing tells the supervisor of a fork: a process is met at its first notified call, at the
 * latest when it ends (exit_group is notified). Each is held by a pidfd, which becomes readable
 * when it ends, whoever reaps it.
 */
#ifndef SP_SUPERVISE_PROCESSES_H
#define SP_SUPERVISE_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"

struct sp_lane;

#define SP_PROCESSES_MAX 4096u

/* An exec that was let through and has not yet shown whether it succeeded. */
struct sp_pending_exec {
    bool waiting;
    bool guarded;    /* what comes of it is compared with what was let through */
    bool unsure;     /* another thread's was pending when it was asked for */
    bool script;     /* it is let through as a script's interpreter */
    pid_t tid;       /* who asked for it */
    uint64_t device; /* of the file that the process will be an image of */
    uint64_t inode;
    uint64_t t_ns;
    uint64_t mark;            /* sp_guest_image() before */
    int memory;               /* sp_guest_memory() before, -1: none */
    struct sp_buffer members; /* path, argv, at ... as JSON members */
};

struct sp_process {
    pid_t pid;
    pid_t parent;
    uint64_t start_ticks; /* with pid an identity that is not reused */
    int pidfd;
    struct sp_lane *lane; /* NULL: no agent in it */
    struct sp_pending_exec exec;
    struct {
        pid_t tid;
        uint64_t asked; /* hash of the path that a search along PATH began with */
        uint64_t name;  /* ... and of the name searched for */
    } denied_exec;
    bool code_unsure; /* threads may have had another file mapped than was judged */
    bool by_env;      /* it is env, started for an allowed script */
    bool exited;      /* its exit event is written */
    bool program;     /* the first one */
    bool replaced;    /* it became another program since it was made */
    struct sp_process *next; /* in the same bucket */
};

#define SP_PROCESS_BUCKETS 256u
#define SP_TID_CACHE       64u

struct sp_processes {
    struct sp_process *buckets[SP_PROCESS_BUCKETS];
    unsigned count;
    struct {
        pid_t tid;
        struct sp_process *process;
    } threads[SP_TID_CACHE];
};

/* The process of thread `tid` if it is known; also finds threads met before. */
struct sp_process *sp_processes_of_thread(struct sp_processes *p, pid_t tid);
struct sp_process *sp_processes_find(struct sp_processes *p, pid_t pid);

/* Adds one; NULL when there are too many or memory is out. Takes the pidfd (may be -1). */
struct sp_process *sp_processes_add(struct sp_processes *p, pid_t pid, pid_t parent,
                                    uint64_t start_ticks, int pidfd);
void sp_processes_note_thread(struct sp_processes *p, pid_t tid,
                              struct sp_process *process);

/* Forgets it, closing its pidfd; its lane must have been freed. */
void sp_processes_remove(struct sp_processes *p, struct sp_process *process);

/* Calls `each` for every process; it may remove the one it is given. */
void sp_processes_each(struct sp_processes *p,
                       void (*each)(void *context, struct sp_process *process),
                       void *context);

#endif
