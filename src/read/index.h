/* A trace by the position of its events: position i is the i-th event, runs counted as the
 * events they hold. The file is gone through once, then any event is read by itself. Memory
 * grows by 16 bytes for every 32 lines, and by the functions' names.
 *
 * Not for several threads at once, but for what search.h offers, which only reads what the
 * building left behind.
 */
#ifndef SP_READ_INDEX_H
#define SP_READ_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "read/reader.h"

struct sp_index;

/* Takes `fd` on success (a regular file, from its beginning, its position is of no matter). Only looks
 * at the first line. -1 with *ret_fault. */
int sp_index_open_fd(int fd, struct sp_index **ret_index, struct sp_fault *ret_fault);
void sp_index_free(struct sp_index *x);    /* NULL accepted */
int sp_index_fd(const struct sp_index *x); /* borrowed; may be asked at once */

/* Those that the trace names, once it was built; valid as long as the index is. */
const struct sp_functions *sp_index_functions(const struct sp_index *x);

/* Goes through the file, once; must have succeeded before anything below is asked. 0 or -1. */
int sp_index_build(struct sp_index *x, struct sp_fault *ret_fault);

uint64_t sp_index_count(const struct sp_index *x);

/* The event at position `i` < count; pointers in it are valid until the next call. 0 or -1. */
int sp_index_get(struct sp_index *x, uint64_t i, struct sp_read_event *ret_event,
                 struct sp_fault *ret_fault);

#endif
