/* Events of a stream that is still being written: bytes are put in as they come, events are taken
 * out as far as whole lines are there. Runs are given as single `call` and `return` events, as by
 * reader.h.
 *
 *     while (there is more: sp_feed_put(feed, data, size))
 *         while ((got = sp_feed_next(feed, &event, &fault)) > 0) ...
 *
 * A stream may be joined late, so that the first line need not be a start; functions that were
 * named before are then not known.
 */
#ifndef SP_READ_FEED_H
#define SP_READ_FEED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "read/read_event.h"
#include "trace/fault.h"

struct sp_feed;

struct sp_feed *sp_feed_new(void);    /* NULL: no memory */
void sp_feed_free(struct sp_feed *f); /* NULL accepted */

/* Appends bytes. What was taken out is given up; what was not is kept, so that memory stays
 * bounded only where events are taken out before more is put in. false: no memory. */
bool sp_feed_put(struct sp_feed *f, const char *data, size_t size) SP_MUST_CHECK;

/* 1: an event. 0: no whole line is left. -1: *ret_fault says what is wrong and where; nothing
 * behind it can be taken. */
int sp_feed_next(struct sp_feed *f, struct sp_read_event *ret_event,
                 struct sp_fault *ret_fault);

#endif
