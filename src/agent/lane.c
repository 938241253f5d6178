#include "agent/lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/channel.h"
#include "agent/native.h"
#include "agent/side.h"

/* The supervisor makes room before it answers a WAIT; if it did not even then, it never will. */
#define WAITS_MAX 3

union sp_lane_page sp_lane_page __attribute__((aligned(SP_LANE_PAGE)));
__thread uint32_t sp_lane_thread;
struct sp_lane_record sp_lane_scratch;

/* What a forked child inherits, to know that it is one. */
static struct {
    struct sp_ring *ring;
    size_t bytes;
} mapped;

static uint64_t
    unplaced; /* messages lost while there was no ring; told in the next one */

uint32_t sp_lane_thread_learn(void)
{
    bool first = sp_lane_thread == 0;
    sp_lane_thread = (uint32_t)syscall(SYS_gettid);
    /* The main thread's end is the process's. */
    if (first && sp_lane_thread != (uint32_t)getpid())
        sp_native_thread_seen();
    return sp_lane_thread;
}

/* ---- mapping ---------------------------------------------------------------------------- */

static bool area_inside(uint64_t offset, uint64_t size, uint64_t bytes)
{
    return offset <= bytes && size <= bytes - offset && offset % 8 == 0;
}

/* The supervisor is trusted; what is checked is that both sides were built from one header. */
static bool ring_sound(const struct sp_ring *ring, uint64_t bytes)
{
    return ring->magic == SP_RING_MAGIC && ring->bytes == bytes &&
           area_inside(ring->config_offset, sizeof(struct sp_ring_config), bytes) &&
           area_inside(ring->arena_offset, SP_ARENA_BYTES, bytes) &&
           area_inside(ring->folds_offset, SP_FOLDS_MAX * sizeof(struct sp_ring_fold),
                       bytes) &&
           ring->words_count >= 1024 &&
           (ring->words_count & (ring->words_count - 1)) == 0 &&
           ring->words_count <= UINT32_MAX &&
           area_inside(ring->words_offset, ring->words_count * 8, bytes);
}

static struct sp_ring *map_ring(int fd, size_t *ret_bytes)
{
    struct stat status;
    void *memory = MAP_FAILED;
    if (fstat(fd, &status) == 0 && (uint64_t)status.st_size >= sizeof(struct sp_ring))
        memory = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
                      fd, 0);
    close(fd);
    if (memory == MAP_FAILED)
        return NULL;
    if (!ring_sound(memory, (uint64_t)status.st_size)) {
        munmap(memory, (size_t)status.st_size);
        return NULL;
    }
    *ret_bytes = (size_t)status.st_size;
    return memory;
}

static void use_ring(struct sp_ring *ring)
{
    sp_lane.words = (uint64_t *)((uint8_t *)ring + ring->words_offset);
    sp_lane.mask = ring->words_count - 1;
    sp_lane.head = 0;
    sp_lane.limit =
        0; /* so that the first word comes after a TIME and a THREAD message */
    sp_lane.last_ticks = 0;
    sp_lane.last_tid = 0;
    sp_lane.kicked = 0;
    sp_lane.pid = (uint32_t)getpid();
    ring->lost = __atomic_exchange_n(&unplaced, 0, __ATOMIC_RELAXED);
    sp_lane.ring = ring;
}

int sp_lane_open(int fd)
{
    size_t bytes = 0;
    struct sp_ring *ring = map_ring(fd, &bytes);
    if (!ring)
        return -1;
    /* Without the mark a forked child would write into its parent's lane. */
    if (madvise(&sp_lane_page, sizeof sp_lane_page, MADV_WIPEONFORK) < 0) {
        munmap(ring, bytes);
        return -1;
    }
    mapped.ring = ring;
    mapped.bytes = bytes;
    use_ring(ring);
    return 0;
}

/* ---- fork ---------------------------------------------------------------------------------- */

/* The ids that this process gave out so far mean the same functions in the new lane. The
 * parent may go on adding: what it adds after the fork is copied or not, and never used. */
static void copy_functions(const struct sp_ring *from, struct sp_ring *to)
{
    uint32_t count = __atomic_load_n(&from->functions, __ATOMIC_ACQUIRE);
    uint32_t used = __atomic_load_n(&from->arena_used, __ATOMIC_ACQUIRE);
    if (count >= SP_FUNCTIONS_MAX || used > SP_ARENA_BYTES)
        return;
    memcpy((uint8_t *)to + to->arena_offset, (const uint8_t *)from + from->arena_offset,
           used);
    memcpy(to->function_offsets, from->function_offsets,
           (count + 1) * sizeof to->function_offsets[0]);
    to->arena_used = used;
    __atomic_store_n(&to->functions, count, __ATOMIC_RELEASE);
}

bool sp_lane_ready_slowly(void)
{
    struct sp_ring *parents = mapped.ring;
    if (!parents)
        return false;
    size_t parents_bytes = mapped.bytes;
    mapped.ring = NULL;
    sp_lane_thread_learn();
    int64_t fd = sp_call(SP_CALL_HELLO, SP_HELLO_FORK, PY_VERSION_HEX, parents->lane);
    size_t bytes = 0;
    struct sp_ring *ring = fd >= 0 ? map_ring((int)fd, &bytes) : NULL;
    if (ring) {
        copy_functions(parents, ring);
        ring->frames = parents->frames;
        ring->started = parents->started;
        mapped.ring = ring;
        mapped.bytes = bytes;
        use_ring(ring);
    }
    munmap(parents, parents_bytes);
    if (ring && sp_agent.program)
        sp_calls_forked();
    return ring != NULL;
}

bool sp_lane_owned(void)
{
    if (!sp_agent.main || sp_agent.ended)
        return false;
#if PY_VERSION_HEX >= 0x030c0000
    PyThreadState *state = _PyThreadState_UncheckedGet();
    return state && state->interp == sp_agent.main;
#else
    /* The current state is one for the process here, perhaps another thread's: compare, and
     * never look into it. In a subinterpreter they differ, which is what is wanted. */
    PyThreadState *own = PyGILState_GetThisThreadState();
    return own && own == _PyThreadState_UncheckedGet();
#endif
}

/* ---- room ------------------------------------------------------------------------------------ */

/* Sets `limit` to where `count` more words may end, or returns false. */
static bool make_room(uint64_t count)
{
    struct sp_ring *ring = sp_lane.ring;
    uint64_t size = sp_lane.mask + 1;
    for (int waits = 0; waits <= WAITS_MAX; waits++) {
        uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
        uint64_t used = sp_lane.head - tail;
        if (used + count <= size / 2) {
            sp_lane.kicked = 0;
            sp_lane.limit = tail + size / 2;
            return true;
        }
        if (!sp_lane.kicked) {
            sp_lane.kicked = 1;
            sp_call(SP_CALL_KICK, 0, 0, 0);
        }
        if (used + count <= size) {
            sp_lane.limit = tail + size;
            return true;
        }
        if (sp_call(SP_CALL_WAIT, 0, 0, 0) < 0)
            return false;
    }
    return false;
}

static inline void put(uint64_t word)
{
    sp_lane.words[sp_lane.head++ & sp_lane.mask] = word;
}

static inline uint64_t message_word(enum sp_message type, size_t words)
{
    return (uint64_t)type << 24 | words;
}

static inline void publish(void)
{
    __atomic_store_n(&sp_lane.ring->head, sp_lane.head, __ATOMIC_RELEASE);
}

static bool reserve(uint64_t words)
{
    return sp_likely(sp_lane.head + words <= sp_lane.limit) || make_room(words);
}

void sp_lane_lost(void)
{
    struct sp_ring *ring = sp_lane.ring;
    __atomic_fetch_add(ring ? &ring->lost : &unplaced, 1, __ATOMIC_RELAXED);
}

bool sp_lane_prepare(uint64_t now)
{
    if (!sp_lane_ready() || !reserve(9))
        return false;
    uint32_t tid = sp_lane_tid();
    if (sp_lane.last_tid != tid) {
        put(message_word(SP_MSG_THREAD, 2));
        put(tid);
        put(now);
        sp_lane.last_tid = tid;
    }
    if (now - sp_lane.last_ticks > UINT32_MAX) {
        put(message_word(SP_MSG_TIME, 1));
        put(now);
        sp_lane.last_ticks = now;
    }
    publish();
    return true;
}

/* The two halves of a message that wraps around the end of the ring. */
static void copy_in(const void *data, size_t size)
{
    uint64_t at = sp_lane.head & sp_lane.mask;
    size_t words = (size + 7) / 8;
    size_t first = (size_t)(sp_lane.mask + 1 - at) * 8;
    uint8_t *ring = (uint8_t *)sp_lane.words;
    sp_lane.words[(sp_lane.head + words - 1) & sp_lane.mask] = 0; /* the padding */
    if (first > size)
        first = size;
    memcpy(ring + at * 8, data, first);
    memcpy(ring, (const uint8_t *)data + first, size - first);
    sp_lane.head += words;
}

bool sp_lane_message(enum sp_message type, const void *data, size_t size)
{
    size_t words = (size + 7) / 8;
    if (words == 0 || words > SP_MESSAGE_WORDS_MAX || !sp_lane_ready() ||
        !reserve(words + 1)) {
        if (type != SP_MSG_CALL && type != SP_MSG_FOLD) /* whose calls are counted */
            sp_lane_lost();
        return false;
    }
    put(message_word(type, words));
    copy_in(data, size);
    publish();
    return true;
}

/* ---- functions --------------------------------------------------------------------------------- */

#define NAME_MAX_BYTES 512
#define PATH_MAX_BYTES 2048

static uint16_t cut(size_t size, size_t max)
{
    return (uint16_t)(size < max ? size : max);
}

uint32_t sp_lane_function_add(const struct sp_lane_function *function)
{
    if (!sp_lane_ready())
        return 0;
    struct sp_ring *ring = sp_lane.ring;
    struct sp_ring_function head = {
        .line = function->line,
        .name_size = cut(function->name_size, NAME_MAX_BYTES),
        .module_size = cut(function->module_size, NAME_MAX_BYTES),
        .file_size = cut(function->file_size, PATH_MAX_BYTES),
        .native = function->native,
        .reviewed = function->reviewed,
    };
    uint32_t id = ring->functions + 1;
    uint32_t offset = ring->arena_used ? ring->arena_used : 8;
    size_t size = sizeof head + head.name_size + head.module_size + head.file_size;
    if (id >= SP_FUNCTIONS_MAX || offset > SP_ARENA_BYTES ||
        size > SP_ARENA_BYTES - offset)
        return 0;
    uint8_t *at = (uint8_t *)ring + ring->arena_offset + offset;
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    memcpy(at, function->name, head.name_size);
    at += head.name_size;
    memcpy(at, function->module, head.module_size);
    at += head.module_size;
    memcpy(at, function->file, head.file_size);
    ring->function_offsets[id] = offset;
    __atomic_store_n(&ring->arena_used, (offset + (uint32_t)size + 7) & ~7u,
                     __ATOMIC_RELEASE);
    __atomic_store_n(&ring->functions, id, __ATOMIC_RELEASE);
    return id;
}

/* ---- events --------------------------------------------------------------------------------------- */

bool sp_lane_event(struct sp_lane_record *r)
{
    r->event.tid = sp_lane_tid();
    size_t size = sizeof r->event + r->event.size;
    if (!sp_lane_owned())
        return sp_side_event(r, size);
    if (sp_lane_ready())
        r->event.tid = sp_lane_thread; /* relearned if we are a forked child */
    return sp_lane_message(SP_MSG_EVENT, &r->event, size);
}

#define TEXT_PIECE_BYTES (16u << 10)
#define TEXT_BYTES_MAX   (64u << 20)

bool sp_lane_text(const char *text, size_t size)
{
    static struct {
        uint64_t size;
        char bytes[TEXT_PIECE_BYTES];
    } piece;
    if (size > TEXT_BYTES_MAX)
        return false;
    do {
        piece.size = size < TEXT_PIECE_BYTES ? size : TEXT_PIECE_BYTES;
        memcpy(piece.bytes, text, piece.size);
        if (!sp_lane_message(SP_MSG_TEXT, &piece, sizeof piece.size + piece.size))
            return false;
        text += piece.size;
        size -= piece.size;
    } while (size > 0);
    return true;
}

int sp_lane_ask(const struct sp_lane_record *r, char answer[SP_ANSWER_BYTES])
{
    if (!sp_lane.ring && !(sp_lane_owned() && sp_lane_ready()))
        return 0;
    memcpy(sp_lane.ring->ask, &r->event, sizeof r->event + r->event.size);
    sp_lane.ring->answer[0] = '\0';
    int64_t result = sp_call(SP_CALL_ASK, 0, 0, 0);
    memcpy(answer, sp_lane.ring->answer, SP_ANSWER_BYTES);
    answer[SP_ANSWER_BYTES - 1] = '\0';
    return result == 1;
}
