#include "agent/native.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/channel.h"
#include "agent/code.h"
#include "agent/lane.h"
#include "agent/side.h"
#include "agent/stub.h"
#include "agent/turn.h"

/* The process whose lane this is. A vfork child has its parent's memory and another pid:
 * what it does must leave no trace here. In a forked child the lane's pid is wiped. */
static bool in_own_process(void)
{
    return sp_lane.pid == (uint32_t)syscall(SYS_getpid);
}

/* ---- opens ---------------------------------------------------------------------------- */

/* Hash of the path whose open an audit event announced; taken by the open that follows. */
static __thread uint64_t announced;

static uint64_t hash_path(const char *path, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (uint8_t)path[i]) * 0x100000001b3u;
    return hash | 1;
}

void sp_native_announced(const char *path, size_t size)
{
    announced = hash_path(path, size);
}

static void write_open(const char *path, int flags)
{
    static struct sp_lane_record r; /* under the side lock */
    sp_record_begin(&r, SP_KIND_OPEN);
    r.event.flags = SP_EVENT_NATIVE;
    sp_record_string(&r, SP_FIELD_OP, "read");
    sp_record_string(&r, SP_FIELD_PATH, path);
    sp_record_string(&r, SP_FIELD_MODE, "r");
    sp_record_int(&r, SP_FIELD_FLAGS, flags);
    sp_side_event_locked(&r, sizeof r.event + r.event.size);
}

/* With the GIL, the program's line that led here is known. */
static void write_open_at(const char *path, int flags)
{
    sp_turn_take();
    struct sp_lane_record *r = sp_record_act(SP_KIND_OPEN, "read");
    r->event.flags = SP_EVENT_NATIVE;
    sp_record_string(r, SP_FIELD_PATH, path);
    sp_record_string(r, SP_FIELD_MODE, "r");
    sp_record_int(r, SP_FIELD_FLAGS, flags);
    sp_lane_event(r);
    sp_turn_leave();
}

/* Opens that can write are shown by the kernel. */
static void file_opened(int dir, const char *path, int flags)
{
    (void)dir;
    if (!path || (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) ||
        sp_agent.config->opens)
        return;
    int err = errno;
    if (in_own_process()) {
        uint64_t hash = hash_path(path, strlen(path));
        if (announced == hash) {
            announced = 0;
        } else if (sp_lane_owned()) {
            write_open_at(path, flags);
        } else if (sp_side_lock()) {
            write_open(path, flags);
            sp_side_unlock();
        } else {
            sp_lane_lost();
        }
    }
    errno = err;
}

/* ---- lookups --------------------------------------------------------------------------- */

/* The GIL is released in most of them, so that no line of the program can be looked up
 * here: the thread's own Python act (socket.getaddrinfo ...) was announced before. */
static int lookup_begun(const char *function, const char *name)
{
    int err = errno;
    int slot = -1;
    if (in_own_process()) {
        struct sp_lane_record r;
        sp_record_begin(&r, SP_KIND_RESOLVE);
        sp_record_string(&r, SP_FIELD_OP, function);
        if (name)
            sp_record_text(&r, SP_FIELD_HOST, name, strnlen(name, 300));
        slot = sp_lane_announce(SP_ACT_LOOKUP, &r);
    }
    errno = err;
    return slot;
}

static bool lookup_ended(int slot, bool answered, char *message, uint32_t message_size)
{
    if (slot < 0 || !in_own_process())
        return false;
    int err = errno;
    bool denied = false;
    if (sp_agent.config->lookups)
        denied = sp_call(SP_CALL_LOOKUP, (uint64_t)slot, answered, 0) == 1;
    if (denied && message_size > 0) {
        const char *text = (const char *)sp_lane.ring->slots[slot].body;
        size_t size = strnlen(text, sizeof sp_lane.ring->slots[slot].body);
        size = size < message_size - 1 ? size : message_size - 1;
        memcpy(message, text, size);
        message[size] = '\0';
    }
    sp_lane_withdraw(slot);
    errno = err;
    return denied;
}

/* ---- threads ----------------------------------------------------------------------------- */

/* Of the function that this thread is about to start another with, where an audit event
 * told of it. */
static __thread char function[128];
static __thread size_t function_size;

void sp_native_thread_function(const char *name, size_t size)
{
    function_size = size < sizeof function ? size : sizeof function;
    memcpy(function, name, function_size);
}

/* The new thread's own event: written by itself, but for its number and time. */
static struct sp_lane_record *thread_record(bool owned)
{
    struct sp_lane_record *r = malloc(sizeof *r);
    if (!r)
        return NULL;
    sp_record_begin(r, SP_KIND_THREAD);
    sp_record_string(r, SP_FIELD_OP, "start");
    sp_record_int(r, SP_FIELD_PARENT, sp_lane_tid());
    if (function_size > 0)
        sp_record_text(r, SP_FIELD_FUNCTION, function, function_size);
    function_size = 0;
    if (owned) {
        sp_turn_take();
        sp_record_at(r);
        sp_turn_leave();
    }
    return r;
}

static void *thread_made(void)
{
    bool owned = sp_agent.program && sp_lane_owned();
    if (owned && !sp_lane.ring)
        (void)sp_lane_ready(); /* a forked child's, of which nothing was told yet */
    if (!sp_agent.program || sp_agent.ended || !in_own_process())
        return NULL;
    int err = errno;
    struct sp_lane_record *r = thread_record(owned);
    if (sp_agent.calls != SP_CALLS_OFF)
        sp_calls_thread();
    errno = err;
    return r;
}

static void thread_begins(void *made)
{
    struct sp_lane_record *r = made;
    int err = errno;
    if (!sp_agent.ended && in_own_process()) {
        r->event.ticks = sp_clock_ticks();
        r->event.tid = sp_lane_tid();
        sp_side_event(r, sizeof r->event + r->event.size);
    }
    free(r);
    errno = err;
}

static void thread_keeps(unsigned key, void *value)
{
#if PY_VERSION_HEX < 0x030c0000
    if (value && sp_agent.calls != SP_CALLS_OFF)
        sp_calls_state_kept(key, value);
#else
    (void)key, (void)value;
#endif
}

/* Runs as a thread that was seen ends, after the interpreter has let go of it. */
static pthread_key_t thread_key;

static void thread_ended(void *seen)
{
    (void)seen;
    static struct sp_lane_record r;
    if (!in_own_process())
        return;
    if (!sp_side_lock()) {
        sp_lane_lost();
        return;
    }
    sp_record_begin(&r, SP_KIND_THREAD);
    sp_record_string(&r, SP_FIELD_OP, "end");
    sp_side_event_locked(&r, sizeof r.event + r.event.size);
    uint32_t tid = sp_lane_tid();
    for (unsigned i = 0; i < SP_SLOTS; i++)
        if (sp_lane.ring->slots[i].tid == tid)
            sp_lane_withdraw((int)i);
    sp_side_unlock();
}

void sp_native_thread_seen(void)
{
    pthread_setspecific(thread_key, &thread_key);
}

/* After finalisation, exit() is called where SystemExit ended the program; otherwise main()
 * returns, which calls no exit() that we stand in front of. */
static void exits(void)
{
    if (in_own_process() && sp_lane.ring && sp_lane.ring->ended == SP_ENDED_FINALIZED)
        sp_lane.ring->ended = SP_ENDED_SYSTEM_EXIT;
}

void sp_native_install(struct sp_stub *stub)
{
    pthread_key_create(&thread_key, thread_ended);
    stub->file_opened = file_opened;
    stub->lookup_begun = lookup_begun;
    stub->lookup_ended = lookup_ended;
    stub->thread_begins = thread_begins;
    stub->thread_failed = free;
    stub->thread_keeps = thread_keeps;
    stub->thread_made = thread_made;
    stub->exits = exits;
}
