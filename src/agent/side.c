#include "agent/side.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/channel.h"

#define WAITS_MAX 3

/* ---- the lock ------------------------------------------------------------------------------ */

#define SPINS_MAX  100
#define SLEEPS_MAX 20
#define SLEEP_NS   500000000
#define WAITED     0x80000000u /* somebody sleeps until it is open */

/* A thread that held it beyond all patience, torn out of here in the middle; nobody waits for it
 * again. */
static uint32_t torn;

static bool try_lock(uint32_t value)
{
    uint32_t open = 0;
    return __atomic_compare_exchange_n(&sp_lane.side_holder, &open, value, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void sleep_on(uint32_t value)
{
    const struct timespec most = {.tv_nsec = SLEEP_NS};
    syscall(SYS_futex, &sp_lane.side_holder, FUTEX_WAIT_PRIVATE, value, &most, NULL, 0);
}

/* Whoever holds it may wait for room as long as the supervisor takes: so does whoever has slept for
 * long. */
static bool lock_slowly(uint32_t tid)
{
    uint32_t value = 0;
    for (int sleeps = 0; sleeps < SLEEPS_MAX;) {
        value = __atomic_load_n(&sp_lane.side_holder, __ATOMIC_RELAXED);
        if (value == 0) {
            if (try_lock(tid | WAITED))
                return true;
            continue;
        }
        if ((value & WAITED) == 0 &&
            !__atomic_compare_exchange_n(&sp_lane.side_holder, &value, value | WAITED,
                                         false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
        errno = 0;
        sleep_on(value | WAITED);
        if (errno != ETIMEDOUT)
            continue;
        sleeps++;
        if (sp_call(SP_CALL_WAIT, 0, 0, 0) < 0)
            return false;
    }
    torn = value & ~WAITED;
    return false;
}

bool sp_side_lock(void)
{
    uint32_t tid = sp_lane_tid();
    for (int spins = 0; spins < SPINS_MAX; spins++) {
        if (try_lock(tid))
            return true;
        uint32_t holder = __atomic_load_n(&sp_lane.side_holder, __ATOMIC_RELAXED);
        if ((holder & ~WAITED) == tid || (holder != 0 && (holder & ~WAITED) == torn))
            return false;
        sched_yield();
    }
    int err = errno;
    bool locked = lock_slowly(tid);
    errno = err;
    return locked;
}

void sp_side_unlock(void)
{
    uint32_t value = __atomic_exchange_n(&sp_lane.side_holder, 0, __ATOMIC_RELEASE);
    if ((value & WAITED) == 0)
        return;
    int err = errno;
    syscall(SYS_futex, &sp_lane.side_holder, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = err;
}

/* ---- events -------------------------------------------------------------------------------- */

static bool make_room(struct sp_ring *ring, uint64_t head, size_t words)
{
    for (int waits = 0; waits <= WAITS_MAX; waits++) {
        uint64_t tail = __atomic_load_n(&ring->side_tail, __ATOMIC_ACQUIRE);
        if (head - tail + words <= SP_SIDE_WORDS)
            return true;
        if (sp_call(SP_CALL_WAIT, 0, 0, 0) < 0)
            return false;
    }
    return false;
}

bool sp_side_event_locked(const struct sp_lane_record *r, size_t size)
{
    struct sp_ring *ring = sp_lane.ring;
    size_t words = (size + 7) / 8;
    if (!ring || !make_room(ring, ring->side_head, words + 1)) {
        sp_lane_lost();
        return false;
    }
    uint64_t head = ring->side_head;
    ring->side[head++ % SP_SIDE_WORDS] = (uint64_t)SP_MSG_EVENT << 24 | words;
    const uint8_t *from = (const uint8_t *)&r->event;
    for (size_t left = size; left > 0;) {
        uint64_t word = 0;
        size_t part = left < 8 ? left : 8;
        memcpy(&word, from, part);
        ring->side[head++ % SP_SIDE_WORDS] = word;
        from += part;
        left -= part;
    }
    __atomic_store_n(&ring->side_head, head, __ATOMIC_RELEASE);
    return true;
}

bool sp_side_event(const struct sp_lane_record *r, size_t size)
{
    if (!sp_side_lock()) {
        sp_lane_lost();
        return false;
    }
    bool written = sp_side_event_locked(r, size);
    sp_side_unlock();
    return written;
}

/* ---- slots -------------------------------------------------------------------------------- */

/* Under the lock. This thread's slot of that class (lookups are one, Python's acts the
 * other), else a free one, else the one that was written longest ago. */
static int find_slot(struct sp_ring *ring, uint32_t tid, bool lookup)
{
    int found = -1;
    uint32_t oldest = UINT32_MAX;
    for (int i = 0; i < (int)SP_SLOTS; i++) {
        const struct sp_ring_slot *slot = &ring->slots[i];
        if (slot->act != SP_ACT_NONE && slot->tid == tid &&
            (slot->act == SP_ACT_LOOKUP) == lookup)
            return i;
        uint32_t age = slot->act == SP_ACT_NONE ? 0 : slot->serial;
        bool taken = slot->act == SP_ACT_LOOKUP; /* never from under a lookup */
        if (!taken && age < oldest) {
            oldest = age;
            found = i;
        }
    }
    return found;
}

/* Drops whole fields until the rest fits. */
static size_t fitting(const struct sp_lane_record *r, size_t max)
{
    size_t size = 0;
    while (size + sizeof(struct sp_ring_field) <= r->event.size) {
        struct sp_ring_field head;
        memcpy(&head, r->fields + size, sizeof head);
        size_t next = size + sizeof head + head.size;
        if (next > max)
            break;
        size = next;
    }
    return size;
}

int sp_lane_announce(enum sp_act act, const struct sp_lane_record *r)
{
    if (!sp_lane.ring && !(sp_lane_owned() && sp_lane_ready()))
        return -1;
    struct sp_ring *ring = sp_lane.ring;
    if (!sp_side_lock())
        return -1;
    uint32_t tid = sp_lane_tid();
    int index = find_slot(ring, tid, act == SP_ACT_LOOKUP);
    if (index >= 0) {
        struct sp_ring_slot *slot = &ring->slots[index];
        /* Serials rise over the whole lane, so that the highest is the newest. */
        uint32_t serial = sp_lane.serial += 2;
        __atomic_store_n(&slot->serial, serial - 1, __ATOMIC_RELEASE);
        __atomic_thread_fence(__ATOMIC_RELEASE);
        size_t size = fitting(r, sizeof slot->body);
        slot->tid = tid;
        slot->act = (uint16_t)act;
        slot->size = (uint16_t)size;
        memcpy(slot->body, r->fields, size);
        __atomic_store_n(&slot->serial, serial, __ATOMIC_RELEASE);
    }
    sp_side_unlock();
    return index;
}

void sp_lane_withdraw(int slot)
{
    struct sp_ring *ring = sp_lane.ring;
    if (slot >= 0 && ring)
        __atomic_store_n(&ring->slots[slot].act, SP_ACT_NONE, __ATOMIC_RELEASE);
}
