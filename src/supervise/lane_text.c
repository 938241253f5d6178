#include "supervise/lane_text.h"

#include <string.h>

#include "supervise/lane.h"
#include "trace/writer.h"

/* What the lanes of a run hold at once of texts that are still coming. */
#define TEXTS_BYTES_MAX (4u << 20)

static void keep(struct sp_lanes *lanes, struct sp_lane_text *text, const void *piece,
                 size_t size)
{
    size_t room = SP_SOURCE_BYTES_MAX - text->kept.size;
    size_t before = text->kept.capacity;
    if (size > room)
        size = room;
    size_t after = text->kept.size + size;
    bool grows = after > before;
    /* A buffer doubles at the most. What lacks its beginning is of no use. */
    if (grows && lanes->texts_bytes - before + 2 * after > TEXTS_BYTES_MAX)
        text->kept.failed = true;
    sp_buffer_append(&text->kept, piece, size);
    lanes->texts_bytes += text->kept.capacity - before;
}

void sp_lane_text_add(struct sp_lanes *lanes, struct sp_lane_text *text,
                      const void *piece, size_t size)
{
    if (!text->open) {
        crypto_generichash_init(&text->state, NULL, 0, SP_SOURCE_DIGEST_BYTES);
        sp_buffer_init(&text->kept, SP_SOURCE_BYTES_MAX);
        text->open = true;
        text->bytes = 0;
        text->start_bytes = 0;
    }
    crypto_generichash_update(&text->state, piece, size);
    text->bytes += size;
    size_t room = SP_LANE_START_BYTES - text->start_bytes;
    size_t first = size < room ? size : room;
    memcpy(text->start + text->start_bytes, piece, first);
    text->start_bytes += (uint32_t)first;
    keep(lanes, text, piece, size);
}

void sp_lane_text_close(struct sp_lane_text *text, struct sp_source *ret_source)
{
    *ret_source = (struct sp_source){.text = text->kept.size > 0 ? text->kept.data : "",
                                     .size = text->kept.size,
                                     .whole_size = text->bytes};
    crypto_generichash_final(&text->state, ret_source->digest,
                             sizeof ret_source->digest);
    text->open = false;
}

/* Where the first 200 characters end: whole ones, however many bytes the text may hold. */
static size_t start_size(const char *text, size_t size)
{
    unsigned characters = 0;
    for (size_t i = 0; i < size; i++) {
        if (((unsigned char)text[i] & 0xc0) == 0x80)
            continue;
        if (characters++ == 200)
            return i;
    }
    while (size > 0 && size == SP_LANE_START_BYTES &&
           ((unsigned char)text[size - 1] & 0x80)) {
        unsigned char c = (unsigned char)text[--size];
        if (c >= 0xc0)
            break;
    }
    return size;
}

void sp_lane_text_members(const struct sp_lane_text *text,
                          const struct sp_source *source, bool kept,
                          struct sp_trace_writer *w)
{
    char hex[2 * SP_SOURCE_DIGEST_BYTES + 1];
    sodium_bin2hex(hex, sizeof hex, source->digest, sizeof source->digest);
    sp_trace_string(w, "digest", hex);
    sp_trace_uint(w, "size", text->bytes);
    sp_trace_text(w, "start", text->start, start_size(text->start, text->start_bytes));
    if (!kept)
        sp_trace_bool(w, "kept", false);
}

void sp_lane_text_release(struct sp_lanes *lanes, struct sp_lane_text *text)
{
    lanes->texts_bytes -= text->kept.capacity;
    sp_buffer_release(&text->kept);
    text->open = false;
}
