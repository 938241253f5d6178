#include "sys/together.h"

#include <string.h>
#include <unistd.h>

/* A set of all there are now means any: it would keep out those that come later. */
static void widen(cpu_set_t *set)
{
    static long online;
    if (online == 0)
        online = sysconf(_SC_NPROCESSORS_ONLN);
    if (CPU_COUNT(set) >= online)
        memset(set, 0xff, sizeof *set);
}

void sp_together_begin(struct sp_together *together, pid_t tid)
{
    cpu_set_t here;
    int processor = sched_getcpu();
    together->kept = false;
    together->tid = tid;
    if (processor < 0 || processor >= CPU_SETSIZE ||
        sched_getaffinity(0, sizeof together->own, &together->own) != 0 ||
        sched_getaffinity(tid, sizeof together->theirs, &together->theirs) != 0 ||
        !CPU_ISSET(processor, &together->theirs) || CPU_COUNT(&together->own) == 1)
        return;
    CPU_ZERO(&here);
    CPU_SET(processor, &here);
    if (sched_setaffinity(tid, sizeof here, &here) != 0)
        return;
    together->kept = true;
    (void)sched_setaffinity(0, sizeof here, &here);
    widen(&together->own);
    widen(&together->theirs);
}

void sp_together_end(const struct sp_together *together)
{
    if (!together->kept)
        return;
    (void)sched_setaffinity(together->tid, sizeof together->theirs, &together->theirs);
    (void)sched_setaffinity(0, sizeof together->own, &together->own);
}
