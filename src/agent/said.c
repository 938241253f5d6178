#include "agent/said.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/layout.h"

/* The text that this thread was given last; freed with the thread. */
static pthread_key_t given;
static bool given_made;

/* Takes place `i` away, unless it holds something else by now. */
static bool drop(struct sp_ring *ring, unsigned i, uint32_t serial)
{
    uint32_t *place = &ring->denied[i].serial;
    if (!__atomic_compare_exchange_n(place, &serial, 0, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return false;
    uint32_t bit = 1u << i;
    __atomic_fetch_and(&ring->denied_set, ~bit, __ATOMIC_ACQ_REL);
    /* The supervisor came in between. */
    if (__atomic_load_n(place, __ATOMIC_ACQUIRE) != 0)
        __atomic_fetch_or(&ring->denied_set, bit, __ATOMIC_RELEASE);
    return true;
}

/* What place `i` holds, if that is for thread `tid`: copied. */
static bool copy(const struct sp_ring *ring, unsigned i, uint32_t tid,
                 struct sp_ring_denied *to)
{
    const struct sp_ring_denied *from = &ring->denied[i];
    to->serial = __atomic_load_n(&from->serial, __ATOMIC_ACQUIRE);
    if (to->serial == 0 || (to->serial & 1) != 0 ||
        __atomic_load_n(&from->tid, __ATOMIC_RELAXED) != tid)
        return false;
    to->err = from->err;
    to->child = from->child;
    to->time_ns = from->time_ns;
    to->spot = from->spot;
    memcpy(to->text, from->text, sizeof to->text);
    to->text[sizeof to->text - 1] = '\0';
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&from->serial, __ATOMIC_RELAXED) == to->serial;
}

/* Whether what was said is about this errno: a thread's own call has just left it where libc
 * keeps it, and Python is where it made the call; a child's comes as a number. */
static bool answers(const struct sp_ring_denied *denied, int code, int err)
{
    bool here = denied->child ||
                (err == code && denied->spot != 0 && denied->spot == sp_layout_spot());
    return denied->err == code && here &&
           sp_clock_ns() - denied->time_ns <= SP_DENIED_AGE_NS;
}

static char *keep(const char *text)
{
    char *kept = given_made ? pthread_getspecific(given) : NULL;
    if (!kept) {
        kept = given_made ? malloc(SP_SENTENCE_BYTES) : NULL;
        if (!kept || pthread_setspecific(given, kept) != 0) {
            free(kept);
            return NULL;
        }
    }
    memcpy(kept, text, SP_SENTENCE_BYTES);
    return kept;
}

static char *take(struct sp_ring *ring, int code, int err)
{
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    uint32_t set = __atomic_load_n(&ring->denied_set, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < SP_DENIED_MAX; i++) {
        struct sp_ring_denied denied;
        if ((set & 1u << i) != 0 && copy(ring, i, tid, &denied) &&
            answers(&denied, code, err) && drop(ring, i, denied.serial))
            return keep(denied.text);
    }
    return NULL;
}

static char *error_told(int code)
{
    struct sp_ring *ring = sp_lane.ring;
    if (!ring || __atomic_load_n(&ring->denied_set, __ATOMIC_RELAXED) == 0)
        return NULL;
    int err = errno;
    char *text = take(ring, code, err);
    errno = err;
    return text;
}

void sp_said_forget_slowly(struct sp_ring *ring)
{
    int err = errno;
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    uint32_t set = __atomic_load_n(&ring->denied_set, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < SP_DENIED_MAX; i++) {
        uint32_t serial = __atomic_load_n(&ring->denied[i].serial, __ATOMIC_ACQUIRE);
        if ((set & 1u << i) != 0 && serial != 0 && (serial & 1) == 0 &&
            __atomic_load_n(&ring->denied[i].tid, __ATOMIC_RELAXED) == tid)
            drop(ring, i, serial);
    }
    errno = err;
}

void sp_said_install(struct sp_stub *stub)
{
    given_made = pthread_key_create(&given, free) == 0;
    stub->error_told = error_told;
}
