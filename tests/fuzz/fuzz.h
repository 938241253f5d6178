/* What fuzz targets share: demands that hold in every build, bytes taken from the front of an
 * input, and a trace that is written, then held to everything that is said of traces.
 */
#ifndef SP_FUZZ_H
#define SP_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEMAND(cond)                                                                   \
    do {                                                                               \
        if (!(cond)) {                                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
            abort();                                                                   \
        }                                                                              \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is left of an input. */
struct fuzz_bytes {
    const uint8_t *data;
    size_t size;
};

/* Zeros where the input is at its end, so that a cut one still means something. */
static inline void fuzz_take(struct fuzz_bytes *b, void *to, size_t size)
{
    const size_t n = size < b->size ? size : b->size;
    memset(to, 0, size);
    memcpy(to, b->data, n);
    b->data += n;
    b->size -= n;
}

static inline uint8_t fuzz_u8(struct fuzz_bytes *b)
{
    uint8_t value;
    fuzz_take(b, &value, sizeof value);
    return value;
}

static inline uint16_t fuzz_u16(struct fuzz_bytes *b)
{
    uint16_t value;
    fuzz_take(b, &value, sizeof value);
    return value;
}

static inline uint32_t fuzz_u32(struct fuzz_bytes *b)
{
    uint32_t value;
    fuzz_take(b, &value, sizeof value);
    return value;
}

static inline uint64_t fuzz_u64(struct fuzz_bytes *b)
{
    uint64_t value;
    fuzz_take(b, &value, sizeof value);
    return value;
}

/* The next bytes, at most `size` of them, in place. */
static inline struct fuzz_bytes fuzz_part(struct fuzz_bytes *b, size_t size)
{
    const struct fuzz_bytes part = {b->data, size < b->size ? size : b->size};
    b->data += part.size;
    b->size -= part.size;
    return part;
}

/* ---- traces (fuzz_trace_file.c) -------------------------------------------------------- */

struct sp_trace_writer;

/* Begins a trace in memory, with its `start`. *ret_fd is a second descriptor of it. */
struct sp_trace_writer *fuzz_trace_begin(uint64_t size_max_bytes, int *ret_fd);

/* Ends it, and demands that it is sound, that every line of it can be read, that its numbers are
 * without a gap but for those that are told as lost, and that what is told as lost adds up to what
 * the end says. Frees the writer, closes the descriptor. */
void fuzz_trace_finish(struct sp_trace_writer *w, int fd);

#endif
