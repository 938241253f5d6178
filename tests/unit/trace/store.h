/* A trace in memory for tests: written to an unnamed file, read back. */
#ifndef SP_TEST_STORE_H
#define SP_TEST_STORE_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/writer.h"

struct store {
    int fd; /* a second descriptor: the writer owns the first */
    struct sp_trace_writer *w;
};

static inline struct store store_open(const struct sp_trace_options *options)
{
    struct store s = {.fd = memfd_create("trace", MFD_CLOEXEC)};
    assert_true(s.fd >= 0);
    assert_int_equal(sp_trace_writer_new(dup(s.fd), options, &s.w, NULL), 0);
    return s;
}

static inline void store_close(struct store *s)
{
    sp_trace_writer_free(s->w);
    close(s->fd);
}

/* The whole file, terminated; to be freed. */
static inline char *store_text(const struct store *s)
{
    const off_t size = lseek(s->fd, 0, SEEK_END);
    char *text = malloc((size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(pread(s->fd, text, (size_t)size, 0), size);
    text[size] = '\0';
    return text;
}

static inline void store_start(struct store *s)
{
    sp_trace_begin(s->w, SP_KIND_START, SP_LAYER_SUPERVISOR, 0, 1, 1);
    sp_trace_end(s->w);
}

static inline void store_open_event(struct store *s, uint64_t t_ns)
{
    sp_trace_begin(s->w, SP_KIND_OPEN, SP_LAYER_KERNEL, t_ns, 1, 1);
    sp_trace_string(s->w, "path", "/some/where/in/the/file/system");
    sp_trace_end(s->w);
}

static inline int store_finish(struct store *s)
{
    sp_trace_begin_end(s->w, 0, 1);
    return sp_trace_finish(s->w, NULL);
}

#endif
