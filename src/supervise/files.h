/* Which files a run created, changed and deleted: from the record, not by scanning trees.
 *
 * A path is noted when a call that could change it is let through, with whether it was there
 * before; what became of it is looked at when the run is over.
 */
#ifndef SP_SUPERVISE_FILES_H
#define SP_SUPERVISE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "supervise/spill.h"

#define SP_FILES_MAX   4096u
#define SP_FILES_BYTES (512u << 10) /* of their paths together */

struct sp_file_note {
    uint64_t hash;
    uint32_t path; /* offset into the texts */
    bool existed;
    uint64_t device;
    uint64_t inode;
    uint64_t size_bytes;
    uint64_t blocks;
    uint8_t place; /* enum, once it was looked at: where it lies */
    int64_t modified_ns;
    int64_t changed_ns;
};

struct sp_files {
    struct sp_file_note *items;
    uint32_t count;
    uint32_t room;
    uint64_t missed; /* paths that found no room */
    struct sp_buffer texts;
    struct sp_spill spill;
};

void sp_files_init(struct sp_files *files);
void sp_files_release(struct sp_files *files);

/* `path` is absolute. Only the first note of a path counts. */
void sp_files_note(struct sp_files *files, const char *path);

/* By how many bytes on disk the files have grown, and how many of these are in memory (tmpfs).
 * What the run removed does not count. */
void sp_files_grown(struct sp_files *files, uint64_t *ret_bytes, uint64_t *ret_memory);

/* Whether one of the next `count` files, from *next on, has grown to `size` bytes. */
bool sp_files_reached(const struct sp_files *files, uint64_t size, uint32_t *next,
                      uint32_t count);
/* Whether the path was noted and was not there then: what is there now is the run's own. */
bool sp_files_made(const struct sp_files *files, const char *path);

/* Removes what the run made in /dev/shm: shared memory and semaphores, which nothing else would
 * ever remove. To be called when no process of the run is left. `own`: what was made, where the
 * supervisor made it; NULL: any file under a name that the run was the first to use. */
struct sp_shared_memory;
void sp_files_remove_shared_memory(const struct sp_files *files,
                                   const struct sp_shared_memory *own);

/* {"created":[...],"changed":[...],"deleted":[...]}: each with path and, where it is there,
 * size; without what lies below `except`, which may be NULL. */
void sp_files_write(const struct sp_files *files, const char *except,
                    struct sp_buffer *to);

#endif
