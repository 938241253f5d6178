#include "supervise/ticks.h"

#include "base/clock.h"

void sp_ticks_init(struct sp_ticks *t, uint64_t start_ns)
{
    t->start_ns = start_ns;
    t->from_ns = sp_clock_ns();
    t->from_ticks = sp_clock_ticks();
    t->now_ns = t->from_ns;
    t->now_ticks = t->from_ticks;
    t->rate = 1ull << 32;
}

void sp_ticks_refresh(struct sp_ticks *t)
{
    uint64_t ns = sp_clock_ns();
    uint64_t ticks = sp_clock_ticks();
    if (ns <= t->now_ns || ticks <= t->now_ticks)
        return;
    t->now_ns = ns;
    t->now_ticks = ticks;
    t->rate = (uint64_t)((((unsigned __int128)(ns - t->from_ns)) << 32) /
                         (ticks - t->from_ticks));
}

uint64_t sp_ticks_at(const struct sp_ticks *t, uint64_t ticks)
{
    uint64_t now = t->now_ns - t->start_ns;
    if (ticks >= t->now_ticks)
        return now;
    uint64_t back = sp_ticks_span(t, t->now_ticks - ticks);
    return back >= now ? 0 : now - back;
}
