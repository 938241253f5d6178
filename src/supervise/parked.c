#include "supervise/parked.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/scope.h"
#include "supervise/network.h"
#include "supervise/sending.h"
#include "sys/guest.h"
#include "sys/listener.h"
#include "sys/watchdog.h"

/* How often threads and signals are looked at while calls wait: a signal that is left lying is
 * taken by another thread in the end. */
#define LOOK_NS 10000000u
/* Of each look; the rest is looked at in the next ones. */
#define LOOKS_MAX    8u
#define PAUSE_MIN_NS 2000000u
#define PAUSE_MAX_NS 50000000u

struct sp_parked *sp_park(struct sp_act_call *call, enum sp_parked_kind kind)
{
    struct sp_parked_calls *calls = &call->s->parked;
    unsigned at = 0;
    while (at < SP_PARKED_MAX && calls->items[at] != NULL)
        at++;
    struct sp_parked *parked = at < SP_PARKED_MAX ? calloc(1, sizeof *parked) : NULL;
    if (parked == NULL)
        return NULL;
    parked->id = call->n->id;
    parked->serial = ++calls->serial;
    parked->kind = kind;
    parked->pid = call->process->pid;
    parked->tid = (pid_t)call->n->pid;
    parked->fd = parked->object = -1;
    parked->late = EAGAIN;
    parked->interrupted = EINTR;
    sp_buffer_init(&parked->members, 64u << 10);
    calls->items[at] = parked;
    calls->count++;
    return parked;
}

bool sp_park_watch(struct sp_supervisor *s, struct sp_parked *parked, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = parked};
    parked->watched = epoll_ctl(s->epoll, EPOLL_CTL_ADD, parked->fd, &e) == 0;
    return parked->watched;
}

static void unwatch(struct sp_supervisor *s, struct sp_parked *parked)
{
    /* The guest holds the description as well: closing ours would not end the watch. */
    if (parked->watched)
        epoll_ctl(s->epoll, EPOLL_CTL_DEL, parked->fd, NULL);
    parked->watched = false;
}

void sp_park_pause(struct sp_supervisor *s, struct sp_parked *parked)
{
    unwatch(s, parked);
    parked->pause_ns = parked->pause_ns == 0 ? PAUSE_MIN_NS : parked->pause_ns * 2;
    if (parked->pause_ns > PAUSE_MAX_NS)
        parked->pause_ns = PAUSE_MAX_NS;
    parked->again_ns = sp_clock_ns() + parked->pause_ns;
}

void sp_park_drop(struct sp_supervisor *s, struct sp_parked *parked)
{
    struct sp_parked_calls *calls = &s->parked;
    for (unsigned i = 0; i < SP_PARKED_MAX; i++)
        if (calls->items[i] == parked)
            calls->items[i] = NULL;
    calls->count--;
    unwatch(s, parked);
    (void)sp_watchdog_begin();
    sp_close_fd(&parked->fd);
    sp_watchdog_end();
    sp_close_fd(&parked->object);
    sp_send_release(parked->send);
    sp_buffer_release(&parked->members);
    free(parked);
}

void sp_park_answer(struct sp_supervisor *s, struct sp_parked *parked,
                    struct sp_answer answer)
{
    uint64_t id = parked->id;
    pid_t tid = parked->tid;
    sp_park_drop(s, parked);
    sp_notify_answer(s, id, tid, answer);
}

/* It is over before it came to its end: what was sent so far has been sent. */
static void give_up(struct sp_supervisor *s, struct sp_parked *parked, int err)
{
    size_t sent = parked->send != NULL ? sp_send_done(parked->send) : 0;
    if (parked->kind == SP_PARKED_RESOLVE)
        sp_resolve_late(s, parked);
    else
        sp_park_answer(s, parked, sent > 0 ? SP_RETURN((int64_t)sent) : SP_REFUSE(err));
}

/* The call goes on from where it stood. */
static void again(struct sp_supervisor *s, struct sp_parked *parked)
{
    struct sp_answer answer = SP_LATER;
    if (!sp_listener_valid(s->guest.listener, parked->id)) {
        sp_park_drop(s, parked);
        return;
    }
    switch (parked->kind) {
    case SP_PARKED_CONNECT:
    case SP_PARKED_QUEUE:
        answer = sp_connect_again(s, parked);
        break;
    case SP_PARKED_SEND:
        answer = sp_send_again(s, parked);
        break;
    case SP_PARKED_RESOLVE:
        break;
    }
    if (answer.kind != SP_ANSWER_LATER)
        sp_park_answer(s, parked, answer);
}

bool sp_parked_ready(struct sp_supervisor *s, void *about)
{
    for (unsigned i = 0; s->parked.count > 0 && i < SP_PARKED_MAX; i++)
        if (s->parked.items[i] == about) {
            again(s, about);
            return true;
        }
    return false;
}

struct sp_parked *sp_parked_find(struct sp_parked_calls *calls, uint32_t serial)
{
    for (unsigned i = 0; i < SP_PARKED_MAX; i++)
        if (calls->items[i] != NULL && calls->items[i]->serial == serial)
            return calls->items[i];
    return NULL;
}

/* A thread that is gone waits for nothing; one that a signal waits for is let go, and the kernel
 * begins the call anew after the handler, or not, as the handler was installed. */
static void look_at(struct sp_supervisor *s, struct sp_parked *parked)
{
    if (!sp_listener_valid(s->guest.listener, parked->id))
        sp_park_drop(s, parked);
    else if (parked->interruptible && sp_guest_interrupted(parked->tid))
        give_up(s, parked, parked->interrupted);
}

static void look_around(struct sp_supervisor *s)
{
    static unsigned next;
    unsigned looks = 0;
    for (unsigned i = 0; i < SP_PARKED_MAX && looks < LOOKS_MAX; i++) {
        struct sp_parked *parked = s->parked.items[next++ % SP_PARKED_MAX];
        if (parked == NULL)
            continue;
        looks++;
        look_at(s, parked);
    }
}

void sp_parked_look(struct sp_supervisor *s, uint64_t now_ns)
{
    if (s->parked.count == 0)
        return;
    for (unsigned i = 0; i < SP_PARKED_MAX; i++) {
        struct sp_parked *parked = s->parked.items[i];
        if (parked == NULL)
            continue;
        if (parked->deadline_ns != 0 && now_ns >= parked->deadline_ns)
            give_up(s, parked, parked->late);
        else if (parked->again_ns != 0 && now_ns >= parked->again_ns)
            again(s, parked);
    }
    if (now_ns - s->parked.looked_ns >= LOOK_NS) {
        s->parked.looked_ns = now_ns;
        look_around(s);
    }
}

uint64_t sp_parked_next_ns(const struct sp_parked_calls *calls, uint64_t now_ns)
{
    if (calls->count == 0)
        return 0;
    uint64_t next = now_ns + LOOK_NS;
    for (unsigned i = 0; i < SP_PARKED_MAX; i++) {
        const struct sp_parked *parked = calls->items[i];
        if (parked == NULL)
            continue;
        if (parked->deadline_ns != 0 && parked->deadline_ns < next)
            next = parked->deadline_ns;
        if (parked->again_ns != 0 && parked->again_ns < next)
            next = parked->again_ns;
    }
    return next;
}

void sp_parked_release(struct sp_supervisor *s)
{
    for (unsigned i = 0; i < SP_PARKED_MAX; i++)
        if (s->parked.items[i] != NULL)
            sp_park_drop(s, s->parked.items[i]);
}
