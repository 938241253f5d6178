/* Reading a trace from its first event to its last, in bounded memory: runs are given as
 * single `call` and `return` events. Reads what is there, sound or not: whether it was
 * altered is for `verify` to say.
 *
 *     struct sp_reader *r;
 *     if (sp_reader_open(path, &r, &fault) < 0) ...
 *     while ((got = sp_reader_next(r, &event, &fault)) > 0) ...
 *     sp_reader_free(r);
 */
#ifndef SP_READ_READER_H
#define SP_READ_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/read_event.h"
#include "trace/fault.h"

struct sp_reader;

/* By name ("-": standard input). -1 with *ret_fault set when it cannot be opened or does not
 * begin as a trace of a format that is known here. */
int sp_reader_open(const char *path, struct sp_reader **ret_reader,
                   struct sp_fault *ret_fault);

/* Takes `fd` on success, read from where it stands. */
int sp_reader_open_fd(int fd, struct sp_reader **ret_reader,
                      struct sp_fault *ret_fault);
void sp_reader_free(struct sp_reader *r); /* NULL accepted */

/* 1: an event. 0: the end of the file. -1: *ret_fault says what is wrong and where; there is
 * nothing to be read behind it. */
int sp_reader_next(struct sp_reader *r, struct sp_read_event *ret_event,
                   struct sp_fault *ret_fault);

/* At the end of the file: whether there was no `end` event, as in a run that was cut short. */
bool sp_reader_was_cut(const struct sp_reader *r);

/* The functions named so far; grows as the trace is read, valid as long as the reader. */
const struct sp_functions *sp_reader_functions(const struct sp_reader *r);

#endif
