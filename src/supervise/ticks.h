/* The agents' tick counter, told as the trace's time.
 *
 * The rate is measured from the run's start to now, again at each refresh: no waiting, and
 * after a millisecond it is as good as the clock's own resolution allows.
 */
#ifndef SP_SUPERVISE_TICKS_H
#define SP_SUPERVISE_TICKS_H

#include <stdint.h>

struct sp_ticks {
    uint64_t start_ns; /* sp_clock_ns() at which `t` is 0 */
    uint64_t from_ticks;
    uint64_t from_ns;
    uint64_t now_ticks;
    uint64_t now_ns;
    uint64_t look_ticks; /* the least that reading both clocks took */
    uint64_t rate;       /* nanoseconds a tick, with 32 bits of fraction */
};

void sp_ticks_init(struct sp_ticks *t, uint64_t start_ns);
void sp_ticks_refresh(struct sp_ticks *t);

/* `t` of an event stamped `ticks`: never before the start, never after the last refresh,
 * whatever a guest wrote. */
uint64_t sp_ticks_at(const struct sp_ticks *t, uint64_t ticks);

/* A span of ticks in nanoseconds; saturates. */
static inline uint64_t sp_ticks_span(const struct sp_ticks *t, uint64_t ticks)
{
    return (uint64_t)(((unsigned __int128)ticks * t->rate) >> 32);
}

#endif
