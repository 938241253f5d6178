/* The processes of a run as a tree, in bounded memory: what finds no room is counted.
 *
 * A number may come again, after its process ended or where a trace is forged: events belong to
 * the process that had it last. A parent always stands before its children, whatever a trace
 * says, so that no process is its own ancestor.
 */
#ifndef SP_READ_PROCESSES_H
#define SP_READ_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/read_event.h"

#define SP_PROCESSES_MAX    65536u
#define SP_PROCESS_ARGV_MAX 4096u /* bytes of a process's arguments; more are cut */
#define SP_PROCESSES_NONE   UINT32_MAX

enum sp_process_end {
    SP_PROCESS_OPEN, /* the trace tells of no end */
    SP_PROCESS_EXITED,
    SP_PROCESS_KILLED,
    SP_PROCESS_ENDED, /* nobody saw how: its parent was told before it could be asked */
};

struct sp_process {
    int64_t pid;
    int64_t parent_pid; /* as the trace has it; 0: not told */
    uint32_t parent;    /* SP_PROCESSES_NONE: none that the trace told of */
    uint32_t child;     /* the first, in order of their start; SP_PROCESSES_NONE */
    uint32_t last_child;
    uint32_t next; /* of the same parent */
    uint64_t start_ns;
    uint64_t end_ns;
    enum sp_process_end end;
    int64_t end_value;   /* exit code, or signal; 0 where neither is known */
    struct sp_text path; /* owned: of the last program that it became; size 0: a fork */
    struct sp_text argv; /* owned: each argument with a zero behind it */
    bool argv_cut;
    bool started; /* the run's first process, or it became a program of its own */
    bool traced;  /* Python in it is traced, as in what it was forked from */
    uint64_t denied;
};

struct sp_processes {
    struct sp_process *items; /* owned, by start */
    uint32_t count;
    uint32_t capacity;
    uint32_t
        *slots;    /* owned: by hash of the number, index + 1 of the last that had it */
    uint64_t seed; /* of the hash */
    uint64_t unlisted; /* processes without room */
    uint64_t last_ns;
};

void sp_processes_init(struct sp_processes *p);
void sp_processes_release(struct sp_processes *p);
void sp_processes_add(struct sp_processes *p, const struct sp_read_event *event);

/* The last that had the number; NULL: none. */
const struct sp_process *sp_processes_find(const struct sp_processes *p, int64_t pid);

/* From its start to its end, or to the last that the trace tells. */
uint64_t sp_process_duration(const struct sp_processes *p,
                             const struct sp_process *one);

/* The order of the tree, parents before their children: the first; what comes behind `i`; how far
 * below the roots. SP_PROCESSES_NONE at the end. */
uint32_t sp_processes_first(const struct sp_processes *p);
uint32_t sp_processes_behind(const struct sp_processes *p, uint32_t i, unsigned *depth);

#endif
