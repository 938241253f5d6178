#include "supervise/ticks.h"

#include "base/clock.h"

#define TRIES 3

/* Both clocks at one moment. Between two looks this process may have to wait for a processor, and a
 * run of a tenth of a second would measure its rate wrong by half: what took long is tried again, and
 * the one that took least time counts. */
static void look(struct sp_ticks *t, uint64_t *ret_ns, uint64_t *ret_ticks)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < TRIES && least > 2 * t->look_ticks; i++) {
        uint64_t before = sp_clock_ticks();
        uint64_t ns = sp_clock_ns();
        uint64_t took = sp_clock_ticks() - before;
        if (took >= least)
            continue;
        least = took;
        *ret_ns = ns;
        *ret_ticks = before + took / 2;
    }
    if (t->look_ticks == 0 || least < t->look_ticks)
        t->look_ticks = least;
}

void sp_ticks_init(struct sp_ticks *t, uint64_t start_ns)
{
    t->start_ns = start_ns;
    t->look_ticks = 0;
    look(t, &t->from_ns, &t->from_ticks);
    t->now_ns = t->from_ns;
    t->now_ticks = t->from_ticks;
    t->rate = 1ull << 32;
}

void sp_ticks_refresh(struct sp_ticks *t)
{
    uint64_t ns = 0;
    uint64_t ticks = 0;
    look(t, &ns, &ticks);
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
