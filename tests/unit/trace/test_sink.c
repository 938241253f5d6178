/* A disk that is full, in both ways a file system tells it: fallocate() and pwrite() are wrapped
 * by the linker (see meson.build), and fail as the test wants. */
#include "requires.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "store.h"
#include "trace/verify.h"

static bool can_allocate;   /* else: EOPNOTSUPP, as on a file system that cannot */
static uint64_t disk_bytes; /* offsets up to here can be had */

int __real_fallocate64(int fd, int mode, off_t offset, off_t size);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t size);
ssize_t __real_pwrite64(int fd, const void *data, size_t size, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t offset);

int __wrap_fallocate64(int fd, int mode, off_t offset, off_t size)
{
    (void)fd;
    (void)mode;
    if (!can_allocate)
        errno = EOPNOTSUPP;
    else if ((uint64_t)(offset + size) > disk_bytes)
        errno = ENOSPC;
    else
        return 0;
    return -1;
}

/* As a real disk does it, what fits of the data is written. */
ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t offset)
{
    if ((uint64_t)offset >= disk_bytes) {
        errno = ENOSPC;
        return -1;
    }
    if ((uint64_t)offset + size > disk_bytes)
        size = (size_t)(disk_bytes - (uint64_t)offset);
    return __real_pwrite64(fd, data, size, offset);
}

static void wait_for_retry(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
}

static void assert_whole_lines(const struct store *s)
{
    char *text = store_text(s);
    const size_t size = strlen(text);
    assert_true(size == 0 || text[size - 1] == '\n');
    free(text);
}

static void assert_sound(const struct store *s, uint64_t lost)
{
    struct sp_verify v;
    lseek(s->fd, 0, SEEK_SET);
    sp_verify_fd(s->fd, NULL, &v);
    assert_string_equal(v.fault.message, "sound and complete");
    assert_int_equal(v.lost, lost);
}

static void test_full_disk_leaves_room_that_was_set_aside_for_the_end(void **state)
{
    (void)state;
    can_allocate = true;
    disk_bytes = 500000;
    struct store s = store_open(NULL);
    store_start(&s);
    for (uint64_t n = 0; n < 20000; n++)
        store_open_event(&s, n);
    const uint64_t lost = sp_trace_lost_count(s.w);
    assert_true(lost > 0);
    assert_whole_lines(&s);
    assert_int_equal(store_finish(&s), 0);
    assert_sound(&s, lost);
    store_close(&s);
}

static void test_full_disk_that_empties_goes_on_with_losses_told(void **state)
{
    for (int allocate = 0; allocate <= 1; allocate++) {
        (void)state;
        can_allocate = allocate;
        disk_bytes = 300000;
        struct store s = store_open(NULL);
        store_start(&s);
        for (uint64_t n = 0; n < 10000; n++)
            store_open_event(&s, n);
        const uint64_t lost = sp_trace_lost_count(s.w);
        assert_true(lost > 0);
        assert_whole_lines(&s);
        disk_bytes = UINT64_MAX;
        wait_for_retry();
        for (uint64_t n = 0; n < 1000; n++)
            store_open_event(&s, 10000 + n);
        assert_int_equal(sp_trace_lost_count(s.w), lost);
        assert_int_equal(store_finish(&s), 0);
        assert_sound(&s, lost);
        store_close(&s);
    }
}

static void test_full_disk_without_setting_aside_leaves_whole_lines_and_fails(
    void **state)
{
    struct sp_error error = {0};
    struct sp_verify v;
    (void)state;
    can_allocate = false;
    disk_bytes = 200001;
    struct store s = store_open(&(struct sp_trace_options){.checkpoint_bytes = 20000});
    store_start(&s);
    for (uint64_t n = 0; n < 10000; n++)
        store_open_event(&s, n);
    assert_whole_lines(&s);
    sp_trace_begin_end(s.w, 0, 1);
    assert_int_equal(sp_trace_finish(s.w, &error), SP_E_TRACE);
    assert_int_equal(error.err, ENOSPC);
    assert_whole_lines(&s);
    lseek(s.fd, 0, SEEK_SET);
    sp_verify_fd(s.fd, NULL, &v);
    assert_int_equal(v.code, SP_VERIFY_CUT);
    assert_true(v.blocks >= 8);
    store_close(&s);
}

static uint64_t tell_violations(struct store *s, int count)
{
    for (int i = 0; i < count; i++) {
        sp_trace_begin(s->w, SP_KIND_VIOLATION, SP_LAYER_KERNEL, 1000000, 1, 1);
        sp_trace_string(s->w, "operation", "open");
        sp_trace_end(s->w);
    }
    return sp_trace_count(s->w, SP_KIND_VIOLATION);
}

static unsigned violations_in(const struct store *s)
{
    char *text = store_text(s);
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, "\"kind\":\"violation\"")); at++)
        n++;
    free(text);
    return n;
}

/* Filled before anything of the trace is on it, by whoever it may be. */
static void test_full_disk_keeps_violations_until_there_is_room(void **state)
{
    (void)state;
    for (int allocate = 0; allocate <= 1; allocate++) {
        can_allocate = allocate;
        disk_bytes = 0;
        struct store s = store_open(NULL);
        store_start(&s);
        for (uint64_t n = 0; n < 5000; n++)
            store_open_event(&s, n);
        assert_int_equal(tell_violations(&s, 100), 100);
        for (uint64_t n = 0; n < 5000; n++)
            store_open_event(&s, 10000 + n);
        assert_true(sp_trace_lost_count(s.w) > 0);
        const uint64_t lost = sp_trace_lost_count(s.w);
        disk_bytes = UINT64_MAX;
        wait_for_retry();
        assert_int_equal(store_finish(&s), 0);
        assert_sound(&s, lost);
        assert_int_equal(violations_in(&s), 100);
        store_close(&s);
    }
}

/* Filled for good, once the run may write. */
static void test_guarded_trace_has_its_violations_on_a_full_disk(void **state)
{
    (void)state;
    can_allocate = true;
    disk_bytes = UINT64_MAX;
    struct store s = store_open(NULL);
    store_start(&s);
    sp_trace_guard(s.w);
    disk_bytes = 250000;
    for (uint64_t n = 0; n < 10000; n++)
        store_open_event(&s, n);
    assert_int_equal(tell_violations(&s, 100), 100);
    const uint64_t lost = sp_trace_lost_count(s.w);
    assert_true(lost > 0);
    assert_int_equal(store_finish(&s), 0);
    assert_sound(&s, lost);
    assert_int_equal(violations_in(&s), 100);
    store_close(&s);
}

static void store_random_event(struct store *s, uint64_t t_ns, uint64_t number)
{
    sp_trace_begin(s->w, SP_KIND_OPEN, SP_LAYER_KERNEL, t_ns, 1, 1);
    sp_trace_uint(s->w, "size", number);
    sp_trace_uint(s->w, "more", number * number);
    sp_trace_end(s->w);
}

/* Compressed, a frame that does not fit is taken back as a whole. Numbers without a pattern keep it
 * large. */
static void test_full_disk_under_a_compressed_trace_loses_nothing_untold(void **state)
{
    (void)state;
    for (int allocate = 0; allocate <= 1; allocate++) {
        can_allocate = allocate;
        disk_bytes = 150000;
        struct store s = store_open(
            &(struct sp_trace_options){.packed = true, .checkpoint_bytes = 20000});
        uint64_t number = 1;
        store_start(&s);
        for (uint64_t n = 0; n < 12000; n++) {
            number = number * 6364136223846793005u + 1442695040888963407u;
            store_random_event(&s, n, number);
            if (n == 9000) {
                disk_bytes = UINT64_MAX;
                wait_for_retry();
            }
        }
        const uint64_t lost = sp_trace_lost_count(s.w);
        assert_true(lost > 0);
        assert_int_equal(store_finish(&s), 0);
        assert_sound(&s, lost);
        assert_true((uint64_t)lseek(s.fd, 0, SEEK_END) <= sp_trace_bytes(s.w));
        store_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_disk_leaves_room_that_was_set_aside_for_the_end),
        cmocka_unit_test(test_full_disk_that_empties_goes_on_with_losses_told),
        cmocka_unit_test(test_full_disk_keeps_violations_until_there_is_room),
        cmocka_unit_test(test_guarded_trace_has_its_violations_on_a_full_disk),
        cmocka_unit_test(
            test_full_disk_without_setting_aside_leaves_whole_lines_and_fails),
        cmocka_unit_test(test_full_disk_under_a_compressed_trace_loses_nothing_untold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
