/* What all descendants of this process use together, by looking now and then.
 *
 * This process must be a sub-reaper, so that none of them gets away. Each is held by open files of
 * its own in /proc, which never speak of another process that got its number.
 *
 * Processor time: what each process was seen to have used itself, and what parents gathered of
 * children that ended, as far as it was not seen before. Lost is only what a process used between
 * the last look and its end when its parent did not wait for it.
 *
 * Memory: at first the sum of what each has in memory. That counts shared pages more than once;
 * where it comes near what matters, each process's share is asked for instead (a page of n
 * processes counts 1/n for each), which costs the more the larger the process is.
 */
#ifndef SP_SYS_USAGE_H
#define SP_SYS_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SP_USAGE_PROCESSES_MAX 8192u
#define SP_USAGE_BUCKETS       256u

#define SP_USAGE_FILES 3

struct sp_usage_process {
    pid_t pid;
    uint64_t start_ticks;
    int files[SP_USAGE_FILES]; /* -1: opened for each look */
    bool held;
    uint64_t own_ns;      /* as last seen */
    uint64_t gathered_ns; /* of its children that ended */
    uint64_t resident;
    unsigned threads;
    struct sp_usage_process *next; /* of all */
    struct sp_usage_process **before;
    struct sp_usage_process *beside; /* in the same bucket */
};

struct sp_usage {
    struct sp_usage_process *all; /* newest first */
    struct sp_usage_process *buckets[SP_USAGE_BUCKETS];
    unsigned count;
    unsigned held; /* that are held by open files */
    unsigned held_max;
    int children;         /* /proc/thread-self/children */
    uint64_t gathered_ns; /* what this process had gathered, at the last look */
    uint64_t debt_ns;     /* seen of processes that are gone, and not yet gathered */
    uint64_t cpu_ns;      /* of all, those that ended too; grows only */
    uint64_t resident;    /* bytes: the sum */
    unsigned tasks;       /* processes and threads alive */
    uint64_t threads_ns;  /* when the children of all threads were looked for */
    bool beyond;          /* more processes than can be kept account of */
};

void sp_usage_init(struct sp_usage *usage);
void sp_usage_release(struct sp_usage *usage);

/* A descendant that made itself known: found also where its parent is a thread. */
void sp_usage_note(struct sp_usage *usage, pid_t pid);

/* Takes the time of one that is about to end, while it is still there. */
void sp_usage_see(struct sp_usage *usage, pid_t pid);

/* Looks at all of them. `now_ns`: of sp_clock_ns(). */
void sp_usage_look(struct sp_usage *usage, uint64_t now_ns);

/* Bytes that they use together, shared ones counted once: memory of their own, with what of it is
 * swapped out, and memory that stands for files in memory; not what merely stands for others. */
struct sp_usage_memory {
    uint64_t own;
    uint64_t shared;
};
struct sp_usage_memory sp_usage_memory(const struct sp_usage *usage);

/* Bytes held by open files that have no name any more, or never had one: those in memory, and those
 * in file systems, which may be in memory as well (tmpfs). */
void sp_usage_nameless(const struct sp_usage *usage, uint64_t *ret_memory,
                       uint64_t *ret_disk);

/* Whether the kernel tells of children at all. */
bool sp_usage_possible(void);

#endif
