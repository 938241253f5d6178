#include "requires.h"

#include <stdio.h>
#include <string.h>

#include "supervise/lane.h"
#include "trace/store.h"
#include "trace/verify.h"

/* A lane and the guest's side of it. */
struct pair {
    struct sp_lanes lanes;
    struct sp_lane *lane;
    struct sp_ring *ring;
    struct store store;
};

static const struct sp_ring_config config = {.size = sizeof config};

static struct sp_ring *ring_map(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    void *memory = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    close(fd);
    return memory;
}

static void pair_open(struct pair *p, enum sp_calls_level calls)
{
    int fd = -1;
    p->store = store_open(NULL);
    store_start(&p->store);
    sp_lanes_init(&p->lanes, 0, calls, &config, sizeof config);
    assert_int_equal(sp_lane_new(&p->lanes, 7, 100, NULL, &p->lane, &fd, NULL), 0);
    p->ring = ring_map(fd);
}

static void pair_close(struct pair *p)
{
    munmap(p->ring, p->ring->bytes);
    sp_lane_free(p->lane);
    assert_int_equal(p->lanes.memory_bytes, 0);
    assert_int_equal(p->lanes.texts_bytes, 0);
    sp_lanes_release(&p->lanes);
    store_close(&p->store);
}

static void put(struct pair *p, uint64_t word)
{
    uint64_t *words = (uint64_t *)((uint8_t *)p->ring + p->ring->words_offset);
    words[p->ring->head++ & (p->ring->words_count - 1)] = word;
}

static void put_message(struct pair *p, enum sp_message type, const void *data,
                        size_t size)
{
    size_t words = (size + 7) / 8;
    put(p, (uint64_t)type << 24 | words);
    for (size_t i = 0; i < words; i++) {
        uint64_t word = 0;
        size_t left = size - i * 8;
        memcpy(&word, (const uint8_t *)data + i * 8, left < 8 ? left : 8);
        put(p, word);
    }
}

static uint32_t add_function(struct pair *p, const char *name)
{
    uint32_t id = ++p->ring->functions;
    struct sp_ring_function f = {.line = 10 + id,
                                 .name_size = (uint16_t)strlen(name),
                                 .module_size = 1,
                                 .file_size = 4};
    uint32_t at = p->ring->arena_used ? p->ring->arena_used : 8;
    uint8_t *to = (uint8_t *)p->ring + p->ring->arena_offset + at;
    memcpy(to, &f, sizeof f);
    memcpy(to + sizeof f, name, f.name_size);
    memcpy(to + sizeof f + f.name_size, "m/f.py", 5);
    p->ring->function_offsets[id] = at;
    p->ring->arena_used = at + (uint32_t)sizeof f + f.name_size + 5;
    return id;
}

static char *finish(struct pair *p)
{
    struct sp_verify v;
    assert_int_equal(store_finish(&p->store), 0);
    lseek(p->store.fd, 0, SEEK_SET);
    sp_verify_fd(p->store.fd, NULL, &v);
    assert_int_equal(v.code, SP_VERIFY_SOUND);
    return store_text(&p->store);
}

static unsigned occurrences(const char *text, const char *what)
{
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        count++;
    return count;
}

static void test_lane_words_become_runs(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, SP_CALLS_ALL);
    uint32_t outer = add_function(&p, "outer");
    uint32_t inner = add_function(&p, "inner");
    uint64_t tid = 101;
    const uint64_t thread[2] = {tid, 0};
    put_message(&p, SP_MSG_THREAD, thread, sizeof thread);
    put(&p, (uint64_t)outer << 32);
    put(&p, (uint64_t)inner << 32 | 1000);
    put(&p, (uint64_t)(inner | 1u << 31 | 1u << 29) << 32 | 1000);
    put(&p, (uint64_t)(outer | 1u << 31 | 1u << 30) << 32 | 1000);
    assert_false(sp_lane_drain(p.lane, p.store.w, 0));
    assert_int_equal(p.ring->tail, p.ring->head);
    char *text = finish(&p);
    assert_non_null(strstr(text, "\"tid\":101"));
    assert_non_null(strstr(text, "\"n\":4,\"f\":[1,2,-2,-1]"));
    assert_non_null(strstr(text, "\"raised\":[2]"));
    assert_non_null(strstr(text, "\"resumed\":[3]"));
    assert_int_equal(occurrences(text, "\"kind\":\"function\""), 2);
    free(text);
    pair_close(&p);
}

static void test_lane_drain_is_bounded(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, SP_CALLS_ALL);
    uint32_t id = add_function(&p, "f");
    for (int i = 0; i < 100; i++)
        put(&p, (uint64_t)id << 32);
    assert_true(sp_lane_drain(p.lane, p.store.w, 10));
    assert_int_equal(p.ring->tail, 10);
    assert_false(sp_lane_drain(p.lane, p.store.w, 0));
    pair_close(&p);
}

static void test_lane_forked_child_keeps_ids(void **state)
{
    struct pair p;
    struct sp_lane *child;
    int fd = -1;
    (void)state;
    pair_open(&p, SP_CALLS_ALL);
    uint32_t id = add_function(&p, "shared");
    put(&p, (uint64_t)id << 32);
    sp_lane_drain(p.lane, p.store.w, 0);
    assert_int_equal(sp_lane_new(&p.lanes, 8, 200, p.lane, &child, &fd, NULL), 0);
    struct pair c = {.ring = ring_map(fd)};
    put(&c, (uint64_t)id << 32);
    sp_lane_drain(child, p.store.w, 0);
    munmap(c.ring, c.ring->bytes);
    sp_lane_free(child);
    char *text = finish(&p);
    assert_int_equal(occurrences(text, "\"kind\":\"function\""), 1);
    assert_int_equal(occurrences(text, "\"n\":1,\"f\":[1]"), 2);
    free(text);
    pair_close(&p);
}

static void test_lane_folds_are_written_at_the_end(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, SP_CALLS_FOLDED);
    uint32_t caller = add_function(&p, "caller");
    uint32_t callee = add_function(&p, "callee");
    struct sp_ring_fold *folds =
        (struct sp_ring_fold *)((uint8_t *)p.ring + p.ring->folds_offset);
    folds[0] = (struct sp_ring_fold){caller, callee, 41, 0, 1000, 500};
    folds[1] = (struct sp_ring_fold){0, caller, 0, 0, 1000, 500}; /* told by itself */
    folds[2] = (struct sp_ring_fold){caller, 60000, 1, 0, 0, 0};  /* no such function */
    folds[3] = (struct sp_ring_fold){callee, caller, 0, 0, 0, 0}; /* has not returned */
    p.ring->folds_used = UINT32_MAX;
    p.ring->fold_lost = 5;
    sp_lane_finish(p.lane, p.store.w);
    char *text = finish(&p);
    assert_non_null(strstr(text, "\"function\":\"callee\",\"caller\":\"caller\""));
    assert_non_null(strstr(text, "\"count\":41"));
    assert_non_null(strstr(text, "\"count\":0,\"total\":"));
    assert_int_equal(occurrences(text, "\"kind\":\"call\""), 2);
    assert_int_equal(occurrences(text, "\"kind\":\"tamper\""), 1);
    assert_int_equal(occurrences(text, "\"kind\":\"lost\""), 1);
    free(text);
    pair_close(&p);
}

static void test_lane_claims_of_losses_take_none_away(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, SP_CALLS_FOLDED);
    sp_trace_lost(p.store.w, 10, 0, "output");
    p.ring->fold_lost = UINT64_MAX - 4;
    sp_lane_finish(p.lane, p.store.w);
    assert_true(sp_trace_lost_count(p.store.w) > 10);
    free(finish(&p));
    pair_close(&p);
}

/* Whatever becomes of the process: what it could not write stands in the ring. */
static void test_lane_tells_what_found_no_room_as_it_grows(void **state)
{
    struct pair p;
    uint64_t tid = 101;
    (void)state;
    pair_open(&p, SP_CALLS_FOLDED);
    p.ring->lost = 3;
    put_message(&p, SP_MSG_THREAD, &tid, sizeof tid);
    sp_lane_drain(p.lane, p.store.w, 0);
    assert_int_equal(sp_trace_lost_count(p.store.w), 3);
    sp_lane_drain(p.lane, p.store.w, 0);
    p.ring->lost = 5;
    sp_lane_finish(p.lane, p.store.w);
    assert_int_equal(sp_trace_lost_count(p.store.w), 5);
    char *text = finish(&p);
    assert_non_null(strstr(text, "\"count\":5,\"reason\":\"events that found no room"));
    free(text);
    pair_close(&p);
}

/* Calls are told apart from returns and resumes. */
static void test_lane_losses_say_how_many_calls_they_stood_for(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, SP_CALLS_ALL);
    p.lanes.memory_max_bytes = 0; /* no room for ids */
    add_function(&p, "f");
    put(&p, 1ull << 32);
    put(&p, (uint64_t)(1u | 1u << 31 | 1u << 30) << 32);
    put(&p, (uint64_t)(1u | 1u << 30) << 32);
    put(&p, (uint64_t)(1u | 1u << 31) << 32);
    p.ring->fold_lost = 7;
    sp_lane_finish(p.lane, p.store.w);
    char *text = finish(&p);
    assert_non_null(strstr(text, "\"count\":4,\"reason\":\"more functions in a run"));
    assert_non_null(strstr(text, "\"calls\":1}"));
    assert_non_null(strstr(text,
                           "\"count\":7,\"reason\":\"calls that found no room to be "
                           "counted\",\"calls\":7}"));
    free(text);
    pair_close(&p);
}

struct fields {
    struct sp_ring_event event;
    uint8_t bytes[4096];
};

static void add_field(struct fields *f, enum sp_field field, const void *data,
                      uint16_t size)
{
    struct sp_ring_field head = {(uint16_t)field, size};
    memcpy(f->bytes + f->event.size, &head, sizeof head);
    memcpy(f->bytes + f->event.size + sizeof head, data, size);
    f->event.size += (uint32_t)sizeof head + size;
}

static void test_lane_event_has_its_fields(void **state)
{
    struct pair p;
    struct fields f = {
        .event = {.tid = 101, .kind = SP_KIND_CODE, .flags = SP_EVENT_TEXT}};
    struct {
        uint64_t size;
        char text[8];
    } source = {5, "x = 1"};
    int64_t line = 3;
    (void)state;
    pair_open(&p, SP_CALLS_OFF);
    put_message(&p, SP_MSG_TEXT, &source, sizeof source);
    add_field(&f, SP_FIELD_AT_FILE, "a.py", 4);
    add_field(&f, SP_FIELD_AT_LINE, &line, sizeof line);
    put_message(&p, SP_MSG_EVENT, &f, sizeof f.event + f.event.size);
    sp_lane_drain(p.lane, p.store.w, 0);
    char *text = finish(&p);
    assert_non_null(strstr(text, "\"at\":\"a.py:3\""));
    assert_non_null(strstr(text, "\"size\":5,\"start\":\"x = 1\""));
    assert_null(strstr(text, "tamper"));
    free(text);
    pair_close(&p);
}

static void put_text(struct pair *p, const char *text, size_t size)
{
    struct {
        uint64_t size;
        char text[32768];
    } source = {.size = size};
    memcpy(source.text, text, size);
    put_message(p, SP_MSG_TEXT, &source, sizeof source.size + size);
}

static void put_code(struct pair *p)
{
    struct fields f = {
        .event = {.tid = 101, .kind = SP_KIND_CODE, .flags = SP_EVENT_TEXT}};
    put_message(p, SP_MSG_EVENT, &f, sizeof f.event + f.event.size);
}

static void test_lane_texts_have_their_line_once(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, SP_CALLS_OFF);
    const char *const texts[] = {"a = 1", "", "a = 1", "b = 2"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put_text(&p, texts[i], strlen(texts[i]));
        put_code(&p);
    }
    sp_lane_drain(p.lane, p.store.w, 0);
    char *text = finish(&p);
    assert_int_equal(occurrences(text, "\"kind\":\"code\""), 4);
    assert_int_equal(occurrences(text, "\"kind\":\"source\""), 3);
    assert_int_equal(occurrences(text, "\"text\":\"a = 1\""), 1);
    assert_int_equal(occurrences(text, "\"text\":\"\""), 1);
    assert_null(strstr(text, "kept"));
    free(text);
    pair_close(&p);
}

/* Lanes that begin texts and never end them. */
static void test_lane_texts_that_are_coming_are_bounded(void **state)
{
    enum { LANES = 64, PIECES = 32 };
    struct pair p;
    struct sp_lane *lanes[LANES];
    static char piece[32768];
    (void)state;
    memset(piece, 'x', sizeof piece);
    pair_open(&p, SP_CALLS_OFF);
    for (int i = 0; i < LANES; i++) {
        struct pair other = {.store = p.store};
        int fd = -1;
        assert_int_equal(
            sp_lane_new(&p.lanes, 8u + (uint32_t)i, 101, NULL, &lanes[i], &fd, NULL),
            0);
        other.ring = ring_map(fd);
        for (int j = 0; j < PIECES; j++) {
            put_text(&other, piece, sizeof piece);
            sp_lane_drain(lanes[i], p.store.w, 0);
        }
        assert_true(p.lanes.texts_bytes <= 5u << 20);
        if (i == LANES - 1) {
            put_code(&other);
            sp_lane_drain(lanes[i], p.store.w, 0);
        }
        munmap(other.ring, other.ring->bytes);
    }
    for (int i = 0; i < LANES; i++)
        sp_lane_free(lanes[i]);
    char *text = finish(&p);
    assert_int_equal(occurrences(text, "\"kind\":\"source\""), 0);
    assert_int_equal(occurrences(text, "\"kept\":false"), 1);
    assert_int_equal(occurrences(text, "\"size\":1048576"), 1);
    free(text);
    pair_close(&p);
}

static void put_event(struct pair *p, uint16_t kind, enum sp_field field, uint16_t size)
{
    struct fields f = {.event = {.tid = 101, .kind = kind}};
    add_field(&f, field, "1234567890123456", size);
    put_message(p, SP_MSG_EVENT, &f, sizeof f.event + f.event.size);
}

static void test_lane_refuses_what_the_ring_may_not_claim(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, SP_CALLS_OFF);
    put_event(&p, SP_KIND_VIOLATION, SP_FIELD_MODULE, 4);
    put_event(&p, SP_KIND_END, SP_FIELD_MODULE, 4);
    put_event(&p, 9999, SP_FIELD_MODULE, 4);
    put_event(&p, SP_KIND_IMPORT, SP_FIELD_COUNT, 4);
    put_event(&p, SP_KIND_IMPORT, SP_FIELD_LINE, 4); /* a number of four bytes */
    put_event(&p, SP_KIND_IMPORT, SP_FIELD_MODULE, 4);
    sp_lane_drain(p.lane, p.store.w, 0);
    char *text = finish(&p);
    assert_int_equal(occurrences(text, "\"kind\":\"tamper\""), 1);
    assert_int_equal(occurrences(text, "\"kind\":\"import\""), 1);
    assert_null(strstr(text, "violation"));
    free(text);
    pair_close(&p);
}

static void test_lane_goes_on_after_a_broken_cursor_or_length(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, SP_CALLS_OFF);
    put(&p, (uint64_t)SP_MSG_EVENT << 24 | 0xffffff);
    sp_lane_drain(p.lane, p.store.w, 0);
    assert_int_equal(p.ring->tail, p.ring->head);
    p.ring->head = UINT64_MAX / 2;
    sp_lane_drain(p.lane, p.store.w, 0);
    put_event(&p, SP_KIND_IMPORT, SP_FIELD_MODULE, 4);
    sp_lane_drain(p.lane, p.store.w, 0);
    p.ring->head = 0; /* backwards */
    assert_false(sp_lane_drain(p.lane, p.store.w, 0));
    char *text = finish(&p);
    assert_int_equal(occurrences(text, "\"kind\":\"import\""), 1);
    assert_int_equal(occurrences(text, "\"kind\":\"tamper\""), 2);
    free(text);
    pair_close(&p);
}

static uint64_t random_next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    return *seed ^= *seed << 17;
}

static void scribble(struct pair *p, uint64_t *seed)
{
    for (int i = 0; i < 200; i++) {
        uint64_t word = random_next(seed);
        if (word % 4 == 0)
            word &= 0x0f0000ff; /* looks like a message */
        else if (word % 4 == 1)
            word &= 0xe0000fffffffffff; /* an id that could be one */
        put(p, word);
    }
    for (int i = 0; i < 50; i++)
        p->ring->side[random_next(seed) % SP_SIDE_WORDS] =
            random_next(seed) & 0x0f0000ff;
    p->ring->side_head = random_next(seed) % 9000;
    p->ring->function_offsets[random_next(seed) % SP_FUNCTIONS_MAX] =
        (uint32_t)random_next(seed);
    p->ring->folds_used = (uint32_t)random_next(seed);
    if (random_next(seed) % 64 == 0)
        p->ring->head = random_next(seed);
}

static void test_lane_survives_noise(void **state)
{
    struct pair p;
    uint64_t seed = 0x5eed;
    (void)state;
    pair_open(&p, SP_CALLS_ALL);
    for (int round = 0; round < 2000; round++) {
        struct sp_claim claim;
        enum sp_kind kind;
        scribble(&p, &seed);
        memset(&p.ring->slots[round % SP_SLOTS], (int)random_next(&seed), 64);
        memset(p.ring->ask, (int)random_next(&seed), 64);
        sp_lane_drain(p.lane, p.store.w, 0);
        sp_lane_act(p.lane, 0, SP_ACT_OPEN, &claim);
        sp_lane_question(p.lane, &kind, &claim);
    }
    sp_lane_finish(p.lane, p.store.w);
    char *text = finish(&p);
    assert_true(occurrences(text, "\"kind\":\"tamper\"") <= 70);
    free(text);
    pair_close(&p);
}

static void announce(struct pair *p, unsigned slot, uint32_t serial, const char *path)
{
    struct fields f = {0};
    struct sp_ring_slot *s = &p->ring->slots[slot];
    add_field(&f, SP_FIELD_PATH, path, (uint16_t)strlen(path));
    memcpy(s->body, f.bytes, f.event.size);
    s->size = (uint16_t)f.event.size;
    s->tid = 101;
    s->act = SP_ACT_OPEN;
    s->serial = serial;
}

static void test_lane_act_is_taken_once_and_newest_first(void **state)
{
    struct pair p;
    struct sp_claim claim;
    size_t size;
    (void)state;
    pair_open(&p, SP_CALLS_OFF);
    announce(&p, 3, 2, "old");
    announce(&p, 1, 4, "new");
    announce(&p, 2, 7, "being written");
    assert_false(sp_lane_act(p.lane, 102, SP_ACT_OPEN, &claim));
    assert_false(sp_lane_act(p.lane, 101, SP_ACT_FILE, &claim));
    assert_true(sp_lane_act(p.lane, 101, SP_ACT_OPEN, &claim));
    assert_memory_equal(sp_claim_text(&claim, SP_FIELD_PATH, &size), "new", 3);
    assert_int_equal(size, 3);
    assert_false(sp_lane_act(p.lane, 101, SP_ACT_OPEN, &claim));
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lane_words_become_runs),
        cmocka_unit_test(test_lane_drain_is_bounded),
        cmocka_unit_test(test_lane_forked_child_keeps_ids),
        cmocka_unit_test(test_lane_folds_are_written_at_the_end),
        cmocka_unit_test(test_lane_claims_of_losses_take_none_away),
        cmocka_unit_test(test_lane_tells_what_found_no_room_as_it_grows),
        cmocka_unit_test(test_lane_losses_say_how_many_calls_they_stood_for),
        cmocka_unit_test(test_lane_event_has_its_fields),
        cmocka_unit_test(test_lane_texts_have_their_line_once),
        cmocka_unit_test(test_lane_texts_that_are_coming_are_bounded),
        cmocka_unit_test(test_lane_refuses_what_the_ring_may_not_claim),
        cmocka_unit_test(test_lane_goes_on_after_a_broken_cursor_or_length),
        cmocka_unit_test(test_lane_survives_noise),
        cmocka_unit_test(test_lane_act_is_taken_once_and_newest_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
