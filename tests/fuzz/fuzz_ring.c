/* The supervisor's side of a ring on any bytes: nothing crashes, nothing waits, and what comes of
 * it is a sound trace that accounts for everything.
 *
 * An input is a program for the guest's side and for the supervisor's: steps of a byte that says
 * what, and what it takes. A guest can write any byte of its ring at any time, and so can these.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "supervise/frames.h"
#include "supervise/lane.h"
#include "trace/writer.h"

#define STEPS_MAX 256u
#define LANES_MAX 4u
#define FIRST_PID 100

enum step {
    STEP_WORDS,    /* count, words: into the ring, as the agent publishes them */
    STEP_MESSAGE,  /* type, bytes: with a head that fits them */
    STEP_SIDE,     /* bytes: an EVENT in the side ring */
    STEP_FUNCTION, /* id, line, sizes, text: described in the arena */
    STEP_FOLD,     /* place, a fold */
    STEP_SLOT,     /* slot, its head, fields */
    STEP_ASK,      /* head, fields */
    STEP_POKE,     /* offset, bytes: anywhere in the ring */
    STEP_CURSOR,   /* which, value: head, side head, folds used, lost */
    STEP_DRAIN,    /* words at most */
    STEP_TAKE,     /* thread, act: what was announced */
    STEP_QUESTION,
    STEP_LOOKUP, /* slot, thread */
    STEP_DENY,   /* thread, errno, spot */
    STEP_FORK, /* a lane that has this one for its parent; from here on it is the one */
    STEP_FINISH,
    STEP_COUNT
};

static const struct sp_ring_config config = {.size = sizeof config};

struct run {
    struct sp_lanes lanes;
    struct sp_trace_writer *w;
    unsigned count;
    struct sp_lane *lane[LANES_MAX];
    struct sp_ring *ring[LANES_MAX]; /* the guest's mapping of it */
    /* As each said when it was made; later what it says may be anything. */
    size_t bytes;
    uint64_t arena_offset;
    uint64_t folds_offset;
    uint64_t words_offset;
    uint64_t words_count;
};

static struct sp_ring *ring_of(struct run *r)
{
    return r->ring[r->count - 1];
}

static struct sp_lane *lane_of(struct run *r)
{
    return r->lane[r->count - 1];
}

static void lane_add(struct run *r)
{
    int fd = -1;
    const struct sp_lane *parent = r->count > 0 ? lane_of(r) : NULL;
    const unsigned i = r->count;
    DEMAND(sp_lane_new(&r->lanes, i + 1, FIRST_PID + (int)i, parent, &r->lane[i], &fd,
                       NULL) == 0);
    r->bytes = (size_t)lseek(fd, 0, SEEK_END);
    r->ring[i] = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    DEMAND(r->ring[i] != MAP_FAILED);
    close(fd);
    r->arena_offset = r->ring[i]->arena_offset;
    r->folds_offset = r->ring[i]->folds_offset;
    r->words_offset = r->ring[i]->words_offset;
    r->words_count = r->ring[i]->words_count;
    r->count++;
}

static uint8_t *at(struct run *r, uint64_t offset)
{
    return (uint8_t *)ring_of(r) + offset;
}

/* ---- the guest's side ---------------------------------------------------------------------- */

static void put_words(struct run *r, struct fuzz_bytes from)
{
    uint64_t *words = (uint64_t *)(void *)at(r, r->words_offset);
    while (from.size > 0) {
        const uint64_t word = fuzz_u64(&from);
        words[ring_of(r)->head++ & (r->words_count - 1)] = word;
    }
}

static void put_message(struct run *r, uint8_t type, struct fuzz_bytes from)
{
    const uint64_t head = (uint64_t)type << 24 | (from.size + 7) / 8;
    put_words(r, (struct fuzz_bytes){(const uint8_t *)&head, sizeof head});
    put_words(r, from);
}

static void put_side(struct run *r, struct fuzz_bytes from)
{
    struct sp_ring *ring = ring_of(r);
    ring->side[ring->side_head++ & (SP_SIDE_WORDS - 1)] =
        (uint64_t)SP_MSG_EVENT << 24 | (from.size + 7) / 8;
    while (from.size > 0)
        ring->side[ring->side_head++ & (SP_SIDE_WORDS - 1)] = fuzz_u64(&from);
}

static void put_function(struct run *r, struct fuzz_bytes *from)
{
    const uint32_t id = fuzz_u16(from);
    const uint32_t offset = (uint32_t)fuzz_u16(from) << 3;
    struct sp_ring_function head;
    fuzz_take(from, &head, sizeof head);
    const struct fuzz_bytes text = fuzz_part(from, fuzz_u8(from));
    ring_of(r)->function_offsets[id] = offset;
    memcpy(at(r, r->arena_offset + offset), &head, sizeof head);
    memcpy(at(r, r->arena_offset + offset + sizeof head), text.data, text.size);
}

static void put_fold(struct run *r, struct fuzz_bytes *from)
{
    struct sp_ring_fold fold;
    const uint8_t place = fuzz_u8(from);
    fuzz_take(from, &fold, sizeof fold);
    memcpy(at(r, r->folds_offset + place * sizeof fold), &fold, sizeof fold);
    if (ring_of(r)->folds_used <= place)
        ring_of(r)->folds_used = place + 1u;
}

static void put_slot(struct run *r, struct fuzz_bytes *from)
{
    struct sp_ring_slot *slot = &ring_of(r)->slots[fuzz_u8(from) % SP_SLOTS];
    fuzz_take(from, slot, offsetof(struct sp_ring_slot, body));
    const struct fuzz_bytes body = fuzz_part(from, fuzz_u8(from));
    memcpy(slot->body, body.data, body.size);
}

static void poke(struct run *r, struct fuzz_bytes *from)
{
    const uint64_t offset = fuzz_u32(from) % (r->bytes - UINT8_MAX);
    const struct fuzz_bytes bytes = fuzz_part(from, fuzz_u8(from));
    memcpy(at(r, offset), bytes.data, bytes.size);
}

static void set_cursor(struct run *r, struct fuzz_bytes *from)
{
    struct sp_ring *ring = ring_of(r);
    const uint8_t which = fuzz_u8(from);
    const uint64_t value = fuzz_u64(from);
    switch (which % 7) {
    case 0:
        ring->head = value;
        break;
    case 1:
        ring->side_head = value;
        break;
    case 2:
        ring->folds_used = (uint32_t)value;
        break;
    case 3:
        ring->fold_lost = value;
        break;
    case 4:
        ring->lost = value;
        break;
    case 5:
        ring->tail = value;
        break;
    default:
        ring->ended = (uint32_t)value;
    }
}

/* ---- the supervisor's ------------------------------------------------------------------------ */

/* A claim lies within what was copied, and each of its fields is of a known one. */
static void check_claim(const struct sp_claim *claim)
{
    DEMAND(claim->count <= SP_CLAIM_FIELDS_MAX);
    for (uint32_t i = 0; i < claim->count; i++) {
        const struct sp_claim_field *f = &claim->fields[i];
        DEMAND(sp_field_key(f->field) != NULL && f->size <= SP_TEXT_MAX);
        DEMAND(f->offset + f->size <= SP_CLAIM_BYTES_MAX);
    }
}

static void take(struct run *r, struct fuzz_bytes *from)
{
    static struct sp_claim claim;
    struct sp_lane_mark mark;
    const pid_t tid = (pid_t)fuzz_u32(from);
    const enum sp_act act = (enum sp_act)(fuzz_u8(from) % (SP_ACT_LOOKUP + 1));
    sp_lane_mark(lane_of(r), &mark);
    const bool first = sp_lane_act(lane_of(r), tid, act, &claim);
    if (first)
        check_claim(&claim);
    if (act != SP_ACT_LOOKUP)
        DEMAND(!sp_lane_act(lane_of(r), tid, act, &claim));
    sp_lane_back(lane_of(r), &mark);
    DEMAND(sp_lane_act(lane_of(r), tid, act, &claim) == first);
}

static void look(struct run *r)
{
    static struct sp_claim claim;
    struct sp_ring_frames frames;
    enum sp_kind kind;
    if (sp_lane_question(lane_of(r), &kind, &claim))
        check_claim(&claim);
    sp_lane_answer(lane_of(r), "no");
    (void)sp_lane_started(lane_of(r));
    DEMAND(sp_lane_ended(lane_of(r)) <= SP_ENDED_SYSTEM_EXIT);
    (void)sp_lane_frames(lane_of(r), &frames);
}

static void end_lookup(struct run *r, struct fuzz_bytes *from)
{
    static struct sp_claim claim;
    const uint64_t slot = fuzz_u8(from);
    const pid_t tid = (pid_t)fuzz_u32(from);
    if (sp_lane_lookup_end(lane_of(r), tid, slot, &claim))
        check_claim(&claim);
    sp_lane_lookup_answer(lane_of(r), slot, "no");
}

static void deny(struct run *r, struct fuzz_bytes *from)
{
    const pid_t tid = (pid_t)fuzz_u32(from);
    const int err = fuzz_u8(from);
    const uint64_t spot = fuzz_u64(from);
    sp_lane_deny(lane_of(r), tid, err, spot, "denied");
    if (err & 1)
        sp_lane_undeny(lane_of(r), tid);
}

static void step(struct run *r, struct fuzz_bytes *from)
{
    switch (fuzz_u8(from) % STEP_COUNT) {
    case STEP_WORDS:
        put_words(r, fuzz_part(from, 8u * fuzz_u8(from)));
        break;
    case STEP_MESSAGE: {
        const uint8_t type = fuzz_u8(from);
        put_message(r, type, fuzz_part(from, fuzz_u16(from)));
        break;
    }
    case STEP_SIDE:
        put_side(r, fuzz_part(from, fuzz_u16(from)));
        break;
    case STEP_FUNCTION:
        put_function(r, from);
        break;
    case STEP_FOLD:
        put_fold(r, from);
        break;
    case STEP_SLOT:
        put_slot(r, from);
        break;
    case STEP_ASK: {
        const struct fuzz_bytes body = fuzz_part(from, fuzz_u16(from));
        memcpy(ring_of(r)->ask, body.data,
               body.size < SP_ASK_BYTES ? body.size : SP_ASK_BYTES);
        break;
    }
    case STEP_POKE:
        poke(r, from);
        break;
    case STEP_CURSOR:
        set_cursor(r, from);
        break;
    case STEP_DRAIN:
        (void)sp_lane_drain(lane_of(r), r->w, fuzz_u8(from));
        break;
    case STEP_TAKE:
        take(r, from);
        break;
    case STEP_QUESTION:
        look(r);
        break;
    case STEP_LOOKUP:
        end_lookup(r, from);
        break;
    case STEP_DENY:
        deny(r, from);
        break;
    case STEP_FORK:
        if (r->count < LANES_MAX)
            lane_add(r);
        break;
    default:
        sp_lane_finish(lane_of(r), r->w);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct run r;
    struct fuzz_bytes from = {data, size};
    int fd;
    r = (struct run){.count = 0};
    const uint8_t how = fuzz_u8(&from);
    sp_lanes_init(&r.lanes, 0, (enum sp_calls_level)(how & 3), &config, sizeof config);
    if (how & 4) /* little room for ids */
        r.lanes.memory_max_bytes = 6000;
    r.w = fuzz_trace_begin(how & 8 ? 80u << 10 : 0, &fd);
    lane_add(&r);
    for (unsigned i = 0; i < STEPS_MAX && from.size > 0; i++)
        step(&r, &from);
    for (unsigned i = r.count; i-- > 0;) {
        sp_lane_finish(r.lane[i], r.w);
        munmap(r.ring[i], r.bytes);
        sp_lane_free(r.lane[i]);
    }
    DEMAND(r.lanes.memory_bytes == 0 && r.lanes.texts_bytes == 0);
    sp_lanes_release(&r.lanes);
    fuzz_trace_finish(r.w, fd);
    return 0;
}
