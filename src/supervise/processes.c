#include "supervise/processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/scope.h"

static struct sp_process **bucket(struct sp_processes *p, pid_t pid)
{
    return &p->buckets[(unsigned)pid % SP_PROCESS_BUCKETS];
}

struct sp_process *sp_processes_find(struct sp_processes *p, pid_t pid)
{
    struct sp_process *at = *bucket(p, pid);
    while (at != NULL && at->pid != pid)
        at = at->next;
    return at;
}

/* A thread's number can be given to another process once the thread has ended. */
static bool still_thread_of(pid_t tid, pid_t pid)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/task/%d", pid, tid);
    return access(name, F_OK) == 0;
}

struct sp_process *sp_processes_of_thread(struct sp_processes *p, pid_t tid)
{
    struct sp_process *process = sp_processes_find(p, tid);
    if (process != NULL)
        return process;
    unsigned slot = (unsigned)tid % SP_TID_CACHE;
    if (p->threads[slot].tid != tid || p->threads[slot].process == NULL)
        return NULL;
    return still_thread_of(tid, p->threads[slot].process->pid)
               ? p->threads[slot].process
               : NULL;
}

void sp_processes_note_thread(struct sp_processes *p, pid_t tid,
                              struct sp_process *process)
{
    if (tid == process->pid)
        return;
    p->threads[(unsigned)tid % SP_TID_CACHE].tid = tid;
    p->threads[(unsigned)tid % SP_TID_CACHE].process = process;
}

struct sp_process *sp_processes_add(struct sp_processes *p, pid_t pid, pid_t parent,
                                    uint64_t start_ticks, int pidfd)
{
    struct sp_process *process =
        p->count < SP_PROCESSES_MAX ? calloc(1, sizeof *process) : NULL;
    if (process == NULL)
        return NULL;
    process->pid = pid;
    process->parent = parent;
    process->start_ticks = start_ticks;
    process->pidfd = pidfd;
    process->exec.memory = -1;
    sp_buffer_init(&process->exec.members, 64u << 10);
    process->next = *bucket(p, pid);
    *bucket(p, pid) = process;
    p->count++;
    return process;
}

void sp_processes_remove(struct sp_processes *p, struct sp_process *process)
{
    struct sp_process **at = bucket(p, process->pid);
    while (*at != process) {
        SP_BUG_ON(*at == NULL);
        at = &(*at)->next;
    }
    *at = process->next;
    p->count--;
    for (unsigned i = 0; i < SP_TID_CACHE; i++)
        if (p->threads[i].process == process)
            p->threads[i].process = NULL;
    if (process->pidfd >= 0)
        close(process->pidfd);
    sp_close_fd(&process->exec.memory);
    sp_buffer_release(&process->exec.members);
    free(process);
}

void sp_processes_each(struct sp_processes *p,
                       void (*each)(void *context, struct sp_process *process),
                       void *context)
{
    for (unsigned i = 0; i < SP_PROCESS_BUCKETS; i++)
        for (struct sp_process *at = p->buckets[i], *next; at != NULL; at = next) {
            next = at->next;
            each(context, at);
        }
}
