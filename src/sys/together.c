#include "sys/together.h"

#include <string.h>

/* Whether this process may run wherever its cpuset lets it; then that is said in a way that goes on
 * to hold when the cpuset grows. */
static bool free_to_roam(void)
{
    cpu_set_t own;
    cpu_set_t all;
    cpu_set_t most;
    memset(&all, 0xff, sizeof all);
    if (sched_getaffinity(0, sizeof own, &own) != 0 ||
        sched_setaffinity(0, sizeof all, &all) != 0)
        return false;
    if (sched_getaffinity(0, sizeof most, &most) == 0 && CPU_EQUAL(&own, &most) &&
        CPU_COUNT(&own) > 1)
        return true;
    (void)sched_setaffinity(0, sizeof own, &own);
    return false;
}

void sp_together_begin(struct sp_together *together, pid_t tid)
{
    static enum { UNKNOWN, FREE, BOUND } we;
    cpu_set_t own;
    cpu_set_t theirs;
    int processor = sched_getcpu();
    together->kept = false;
    together->tid = tid;
    if (we == UNKNOWN)
        we = free_to_roam() ? FREE : BOUND;
    if (we == BOUND || processor < 0 || processor >= CPU_SETSIZE ||
        sched_getaffinity(0, sizeof own, &own) != 0 ||
        sched_getaffinity(tid, sizeof theirs, &theirs) != 0 ||
        !CPU_EQUAL(&own, &theirs))
        return;
    CPU_ZERO(&together->here);
    CPU_SET(processor, &together->here);
    if (sched_setaffinity(tid, sizeof together->here, &together->here) != 0)
        return;
    together->kept = true;
    (void)sched_setaffinity(0, sizeof together->here, &together->here);
}

void sp_together_end(const struct sp_together *together, bool blocked)
{
    cpu_set_t now;
    cpu_set_t all;
    if (!together->kept)
        return;
    memset(&all, 0xff, sizeof all);
    if (blocked && sched_getaffinity(together->tid, sizeof now, &now) == 0 &&
        CPU_EQUAL(&now, &together->here))
        (void)sched_setaffinity(together->tid, sizeof all, &all);
    (void)sched_setaffinity(0, sizeof all, &all);
}
