#include "supervise/spill.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BLOCK 512

static uint64_t blocks_of(const char *path)
{
    struct stat st;
    bool counts = lstat(path, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
    return counts ? (uint64_t)st.st_blocks : 0;
}

static int64_t growth(const struct sp_spilled *item)
{
    return (int64_t)blocks_of(item->path) - (int64_t)item->blocks;
}

void sp_spill_note(struct sp_spill *spill, const char *path, uint64_t hash)
{
    for (unsigned i = 0; i < SP_SPILL_MAX; i++)
        if (spill->items[i].path != NULL && spill->items[i].hash == hash &&
            strcmp(spill->items[i].path, path) == 0)
            return;
    struct sp_spilled *item = &spill->items[spill->next];
    spill->next = (spill->next + 1) % SP_SPILL_MAX;
    if (item->path != NULL) {
        spill->settled_blocks += growth(item);
        /* What others had there is no credit. */
        if (spill->settled_blocks < 0)
            spill->settled_blocks = 0;
        free(item->path);
    }
    *item = (struct sp_spilled){
        .path = strdup(path), .hash = hash, .blocks = blocks_of(path)};
}

uint64_t sp_spill_grown(const struct sp_spill *spill)
{
    int64_t blocks = spill->settled_blocks;
    for (unsigned i = 0; i < SP_SPILL_MAX; i++)
        if (spill->items[i].path != NULL)
            blocks += growth(&spill->items[i]);
    return blocks > 0 ? (uint64_t)blocks * BLOCK : 0;
}

void sp_spill_release(struct sp_spill *spill)
{
    for (unsigned i = 0; i < SP_SPILL_MAX; i++)
        free(spill->items[i].path);
    *spill = (struct sp_spill){0};
}
