#include "supervise/lane.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "supervise/lane_state.h"
#include "trace/writer.h"

#define PAGE          4096u
#define IDS_BYTES_MAX (3u << 20)

/* Places of the parts, the same in every ring of a run. */
#define CONFIG_OFFSET ((sizeof(struct sp_ring) + PAGE - 1) / PAGE * PAGE)
#define ARENA_OFFSET  (CONFIG_OFFSET + SP_CONFIG_BYTES)
#define FOLDS_OFFSET  (ARENA_OFFSET + SP_ARENA_BYTES)
#define WORDS_OFFSET  (FOLDS_OFFSET + SP_FOLDS_MAX * sizeof(struct sp_ring_fold))

_Static_assert(SP_CONFIG_BYTES % PAGE == 0 && SP_ARENA_BYTES % PAGE == 0,
               "parts are whole pages");
_Static_assert(SP_FOLDS_MAX * sizeof(struct sp_ring_fold) % PAGE == 0,
               "parts are whole pages");

void sp_lanes_init(struct sp_lanes *lanes, uint64_t start_ns, enum sp_calls_level calls,
                   const void *config, size_t config_size)
{
    SP_BUG_ON(config_size > SP_CONFIG_BYTES);
    *lanes = (struct sp_lanes){
        .calls = calls,
        .config = config,
        .config_size = (uint32_t)config_size,
        .memory_max_bytes = IDS_BYTES_MAX,
    };
    sp_ticks_init(&lanes->ticks, start_ns);
}

void sp_lanes_release(struct sp_lanes *lanes)
{
    sp_sources_release(&lanes->sources);
}

/* Only memory that can neither shrink under us (SIGBUS) nor grow may be shared with a guest. */
static int ring_create(size_t bytes, struct sp_error *reterr)
{
    sp_auto_fd fd = memfd_create("sandpit", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return sp_fail_errno(reterr, SP_E_HOST, "make shared memory");
    if (ftruncate(fd, (int64_t)bytes) < 0)
        return sp_fail_errno(reterr, SP_E_HOST, "size shared memory");
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return sp_fail_errno(reterr, SP_E_HOST, "seal shared memory");
    return sp_steal_fd(&fd);
}

static void ring_fill(struct sp_lane *lane)
{
    struct sp_ring *ring = lane->ring;
    memcpy((uint8_t *)ring + CONFIG_OFFSET, lane->lanes->config,
           lane->lanes->config_size);
    ring->lane = lane->number;
    ring->bytes = lane->ring_bytes;
    ring->config_offset = CONFIG_OFFSET;
    ring->arena_offset = ARENA_OFFSET;
    ring->folds_offset = FOLDS_OFFSET;
    ring->words_offset = WORDS_OFFSET;
    ring->words_count = lane->words_count;
    ring->magic = SP_RING_MAGIC;
}

int sp_lane_new(struct sp_lanes *lanes, uint32_t number, pid_t pid,
                const struct sp_lane *parent, struct sp_lane **ret_lane, int *ret_fd,
                struct sp_error *reterr)
{
    struct sp_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return sp_fail_errno(reterr, SP_E_HOST, "make a lane");
    lane->lanes = lanes;
    lane->number = number;
    lane->pid = pid;
    lane->tid = pid;
    lane->words_count = lanes->calls == SP_CALLS_ALL ? SP_WORDS_ALL : SP_WORDS_FOLDED;
    lane->ring_bytes = WORDS_OFFSET + lane->words_count * sizeof(uint64_t);
    lane->last_ticks = sp_clock_ticks();
    lane->ring = MAP_FAILED;

    sp_auto_fd fd = ring_create(lane->ring_bytes, reterr);
    int result = fd < 0 ? fd : 0;
    if (result == 0) {
        lane->ring =
            mmap(NULL, lane->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (lane->ring == MAP_FAILED)
            result = sp_fail_errno(reterr, SP_E_HOST, "map shared memory");
    }
    if (result < 0) {
        sp_lane_free(lane);
        return result;
    }
    if (parent)
        sp_name_inherit(lane, parent);
    ring_fill(lane);
    *ret_lane = lane;
    *ret_fd = sp_steal_fd(&fd);
    return 0;
}

void sp_lane_free(struct sp_lane *lane)
{
    if (!lane)
        return;
    sp_name_release(lane);
    sp_lane_text_release(lane->lanes, &lane->text);
    if (lane->ring != MAP_FAILED)
        munmap(lane->ring, lane->ring_bytes);
    free(lane);
}

const uint64_t *sp_lane_words(const struct sp_lane *lane)
{
    return (const uint64_t *)((const uint8_t *)lane->ring + WORDS_OFFSET);
}

const uint8_t *sp_lane_arena(const struct sp_lane *lane)
{
    return (const uint8_t *)lane->ring + ARENA_OFFSET;
}

const struct sp_ring_fold *sp_lane_folds(const struct sp_lane *lane)
{
    return (const struct sp_ring_fold *)((const uint8_t *)lane->ring + FOLDS_OFFSET);
}

uint32_t sp_lane_number(const struct sp_lane *lane)
{
    return lane->number;
}

pid_t sp_lane_pid(const struct sp_lane *lane)
{
    return lane->pid;
}

bool sp_lane_started(const struct sp_lane *lane)
{
    return __atomic_load_n(&lane->ring->started, __ATOMIC_RELAXED) != 0;
}

bool sp_lane_frames(const struct sp_lane *lane, struct sp_ring_frames *ret_frames)
{
    struct sp_ring_frames copy;
    sp_copy_out(&copy, &lane->ring->frames, sizeof copy);
    if (copy.version_hex == 0)
        return false;
    *ret_frames = copy;
    return true;
}

void sp_lane_flaw(struct sp_lane *lane, struct sp_trace_writer *w, enum sp_flaw flaw)
{
    static const char *const what[SP_FLAW_COUNT] = {
        [SP_FLAW_CURSOR] = "the ring's cursor claims more than the ring holds",
        [SP_FLAW_MESSAGE] =
            "a message in the ring is longer than what was written, or of no kind",
        [SP_FLAW_EVENT] =
            "an event in the ring is malformed or may not come from there",
        [SP_FLAW_FUNCTION] = "a function in the ring has no sound description",
        [SP_FLAW_FOLD] = "a count of folded calls in the ring is malformed",
    };
    lane->flaws_count++;
    if (lane->flaws & (1u << flaw))
        return;
    lane->flaws |= 1u << flaw;
    sp_trace_begin(w, SP_KIND_TAMPER, SP_LAYER_SUPERVISOR,
                   sp_ticks_at(&lane->lanes->ticks, UINT64_MAX), lane->pid, lane->pid);
    sp_trace_string(w, "what", what[flaw]);
    sp_trace_end(w);
}

enum sp_ended sp_lane_ended(const struct sp_lane *lane)
{
    uint32_t ended = __atomic_load_n(&lane->ring->ended, __ATOMIC_RELAXED);
    return ended <= SP_ENDED_SYSTEM_EXIT ? (enum sp_ended)ended : SP_ENDED_NOT;
}
