/* The six members that every line of a trace begins with, read without parsing the rest. */
#ifndef SP_TRACE_HEAD_H
#define SP_TRACE_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SP_HEAD_NAME_MAX 31u /* longest kind or layer */

struct sp_head {
    uint64_t seq;
    uint64_t t_ns;
    int64_t pid;
    int64_t tid;
    const char *kind_name; /* points into the line; not terminated */
    size_t kind_size;
    const char *layer_name;
    size_t layer_size;
    int kind;       /* enum sp_kind, -1 for one that is not known here */
    uint64_t count; /* seq numbers it takes: n for a run, else 1 */
    size_t size;    /* of the head: position of the '}' or ',' behind tid */
};

/* `size` bytes without the newline, which must follow. Returns false with the position of
 * the first byte that is wrong. */
bool sp_head_read(const char *line, size_t size, struct sp_head *ret_head,
                  size_t *ret_bad);

#endif
