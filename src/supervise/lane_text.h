/* A text that an agent sends in pieces before the event that speaks of it. */
#ifndef SP_SUPERVISE_LANE_TEXT_H
#define SP_SUPERVISE_LANE_TEXT_H

#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "supervise/sources.h"

struct sp_lanes;
struct sp_trace_writer;

#define SP_LANE_START_BYTES 800u /* of a text's start: 200 characters at most */

struct sp_lane_text {
    bool open; /* pieces have come */
    uint64_t bytes;
    crypto_generichash_state state;
    uint32_t start_bytes;
    char start[SP_LANE_START_BYTES];
    struct sp_buffer kept; /* its beginning, as far as all lanes together may hold */
};

void sp_lane_text_add(struct sp_lanes *lanes, struct sp_lane_text *text,
                      const void *piece, size_t size);

/* No more pieces: its source is text->kept and what is known of it. */
void sp_lane_text_close(struct sp_lane_text *text, struct sp_source *ret_source);

/* The members of the event that speaks of it. `kept`: it has a line of its own. */
void sp_lane_text_members(const struct sp_lane_text *text,
                          const struct sp_source *source, bool kept,
                          struct sp_trace_writer *w);

/* Gives its memory back. */
void sp_lane_text_release(struct sp_lanes *lanes, struct sp_lane_text *text);

#endif
