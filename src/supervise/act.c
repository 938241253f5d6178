/* What the agent announces and asks: the slots of acts about to happen, the ask area. */
#include <string.h>

#include "supervise/lane_state.h"

struct slot_head {
    uint32_t serial;
    pid_t tid;
    uint16_t act;
    uint16_t size;
};

/* A consistent copy of a slot's head; false while it is being written. */
static bool slot_head(const struct sp_ring_slot *slot, struct slot_head *ret_head)
{
    ret_head->serial = __atomic_load_n(&slot->serial, __ATOMIC_ACQUIRE);
    ret_head->tid = (pid_t)__atomic_load_n(&slot->tid, __ATOMIC_RELAXED);
    ret_head->act = __atomic_load_n(&slot->act, __ATOMIC_RELAXED);
    ret_head->size = __atomic_load_n(&slot->size, __ATOMIC_RELAXED);
    return ret_head->serial != 0 && (ret_head->serial & 1) == 0;
}

/* Copies the body; false when the slot was written meanwhile or makes no sense. */
static bool slot_body(const struct sp_ring_slot *slot, const struct slot_head *head,
                      struct sp_claim *claim)
{
    if (head->size > sizeof slot->body)
        return false;
    sp_copy_out(claim->bytes, slot->body, head->size);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&slot->serial, __ATOMIC_RELAXED) == head->serial &&
           sp_claim_parse(claim, head->size);
}

static bool newer(uint32_t serial, uint32_t than)
{
    return (int32_t)(serial - than) > 0;
}

bool sp_lane_act(struct sp_lane *lane, pid_t tid, enum sp_act act,
                 struct sp_claim *ret_claim)
{
    struct slot_head best = {0};
    unsigned at = SP_SLOTS;
    for (unsigned i = 0; i < SP_SLOTS; i++) {
        struct slot_head head;
        if (!slot_head(&lane->ring->slots[i], &head) || (tid != 0 && head.tid != tid) ||
            head.act != act || head.serial == lane->taken[i])
            continue;
        if (at == SP_SLOTS || newer(head.serial, best.serial)) {
            best = head;
            at = i;
        }
        /* An older one of the same kind was for something that never came to the kernel. */
        if (act != SP_ACT_LOOKUP)
            lane->taken[i] = head.serial;
    }
    struct sp_claim claim;
    if (at == SP_SLOTS || !slot_body(&lane->ring->slots[at], &best, &claim))
        return false;
    *ret_claim = claim;
    return true;
}

void sp_lane_mark(const struct sp_lane *lane, struct sp_lane_mark *ret_mark)
{
    memcpy(ret_mark->taken, lane->taken, sizeof lane->taken);
}

void sp_lane_back(struct sp_lane *lane, const struct sp_lane_mark *mark)
{
    memcpy(lane->taken, mark->taken, sizeof lane->taken);
}

bool sp_lane_lookup_end(struct sp_lane *lane, pid_t tid, uint64_t slot,
                        struct sp_claim *ret_claim)
{
    struct slot_head head;
    struct sp_claim claim;
    if (slot >= SP_SLOTS || !slot_head(&lane->ring->slots[slot], &head) ||
        head.tid != tid || head.act != SP_ACT_LOOKUP ||
        head.serial == lane->taken[slot] ||
        !slot_body(&lane->ring->slots[slot], &head, &claim))
        return false;
    lane->taken[slot] = head.serial;
    *ret_claim = claim;
    return true;
}

bool sp_lane_question(struct sp_lane *lane, enum sp_kind *ret_kind,
                      struct sp_claim *ret_claim)
{
    struct sp_ring_event head;
    struct sp_claim claim;
    sp_copy_out(&head, lane->ring->ask, sizeof head);
    if (head.kind >= SP_KIND_COUNT || head.size > SP_ASK_BYTES - sizeof head)
        return false;
    sp_copy_out(claim.bytes, lane->ring->ask + sizeof head, head.size);
    if (!sp_claim_parse(&claim, head.size))
        return false;
    *ret_kind = (enum sp_kind)head.kind;
    *ret_claim = claim;
    return true;
}

static void text_put(char *to, size_t room, const char *text)
{
    size_t size = strnlen(text, room - 1);
    memcpy(to, text, size);
    to[size] = 0;
}

void sp_lane_lookup_answer(struct sp_lane *lane, uint64_t slot, const char *text)
{
    if (slot < SP_SLOTS)
        text_put((char *)lane->ring->slots[slot].body,
                 sizeof lane->ring->slots[slot].body, text);
}

void sp_lane_answer(struct sp_lane *lane, const char *text)
{
    text_put(lane->ring->answer, sizeof lane->ring->answer, text);
}
