#include "supervise/sources.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "trace/writer.h"

/* Twice as many places as texts: a digest is found after a few looks. */
#define PLACES (2u * SP_SOURCES_MAX)

static bool make_places(struct sp_sources *sources)
{
    if (sources->known != NULL)
        return true;
    sources->known = calloc(PLACES, sizeof *sources->known);
    sources->taken = calloc(PLACES, sizeof *sources->taken);
    if (sources->known != NULL && sources->taken != NULL)
        return true;
    sp_sources_release(sources);
    return false;
}

/* The digest's place, or the free one where it belongs. */
static size_t place_of(const struct sp_sources *sources,
                       const uint8_t digest[SP_SOURCE_DIGEST_BYTES])
{
    uint64_t hash;
    memcpy(&hash, digest, sizeof hash);
    size_t at = hash % PLACES;
    while (sources->taken[at] &&
           memcmp(sources->known[at], digest, SP_SOURCE_DIGEST_BYTES) != 0)
        at = (at + 1) % PLACES;
    return at;
}

bool sp_sources_tell(struct sp_sources *sources, struct sp_trace_writer *w,
                     const struct sp_source *source, enum sp_layer layer, uint64_t t_ns,
                     pid_t pid, pid_t tid)
{
    char hex[2 * SP_SOURCE_DIGEST_BYTES + 1];
    if (!make_places(sources))
        return false;
    size_t at = place_of(sources, source->digest);
    if (sources->taken[at])
        return true;
    if (sources->count == SP_SOURCES_MAX ||
        source->size > SP_SOURCES_BYTES_MAX - sources->bytes)
        return false;
    memcpy(sources->known[at], source->digest, SP_SOURCE_DIGEST_BYTES);
    sources->taken[at] = true;
    sources->count++;
    sources->bytes += source->size;
    sodium_bin2hex(hex, sizeof hex, source->digest, sizeof source->digest);
    sp_trace_begin(w, SP_KIND_SOURCE, layer, t_ns, pid, tid);
    sp_trace_string(w, "digest", hex);
    sp_trace_text(w, "file", source->file, source->file_size);
    sp_trace_uint(w, "size", source->whole_size);
    if (source->size < source->whole_size)
        sp_trace_bool(w, "truncated", true);
    sp_trace_text(w, "text", source->text, source->size);
    sp_trace_end(w);
    return true;
}

void sp_sources_release(struct sp_sources *sources)
{
    free(sources->known);
    free(sources->taken);
    sources->known = NULL;
    sources->taken = NULL;
}
