/* The writer writes today what it wrote when the golden file was made: a difference means that the
 * format changed. With a path as argument it writes the file anew. */
#include "requires.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "golden.h"

static void write_to(int fd)
{
    struct sp_trace_writer *w;
    assert_int_equal(sp_trace_writer_new(fd, &golden_options, &w, NULL), 0);
    assert_int_equal(golden_write(w), 0);
    sp_trace_writer_free(w);
}

static size_t read_all(int fd, char *to, size_t size)
{
    size_t used = 0;
    ssize_t n;
    while (used < size && (n = pread(fd, to + used, size - used, (off_t)used)) > 0)
        used += (size_t)n;
    return used;
}

static void test_writer_gives_the_golden_trace_byte_for_byte(void **state)
{
    static char mine[64 << 10];
    static char golden[64 << 10];
    char path[] = "/tmp/sandpit-golden-XXXXXX";
    (void)state;
    const int fd = mkstemp(path);
    const int copy = dup(fd);
    const int file = open(SP_GOLDEN, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && copy >= 0);
    unlink(path);
    assert_true(file >= 0);
    write_to(fd);
    const size_t size = read_all(copy, mine, sizeof mine);
    assert_int_equal(size, read_all(file, golden, sizeof golden));
    assert_memory_equal(mine, golden, size);
    close(copy);
    close(file);
}

int main(int argc, char **argv)
{
    if (argc == 2) {
        struct sp_trace_writer *w;
        const int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (sp_trace_writer_new(fd, &golden_options, &w, NULL) < 0)
            return 1;
        const int result = golden_write(w);
        sp_trace_writer_free(w);
        return result == 0 ? 0 : 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writer_gives_the_golden_trace_byte_for_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
