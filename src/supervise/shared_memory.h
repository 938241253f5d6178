/* Shared memory and semaphores that the run made in /dev/shm: known by what they are, since a name
 * that was the run's own may be somebody else's later.
 */
#ifndef SP_SUPERVISE_SHARED_MEMORY_H
#define SP_SUPERVISE_SHARED_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define SP_SHARED_MEMORY_MAX 4096u /* the oldest ones are forgotten */

struct sp_shared_memory {
    struct {
        uint64_t device;
        uint64_t inode;
    } items[SP_SHARED_MEMORY_MAX];
    unsigned made;
};

/* Whether the path is that of an object of shared memory. */
bool sp_shared_memory_named(const char *path);

/* Whether the operation is one that programs do on such objects, semaphores included: a file is
 * made, used, linked, removed. Anything else in that folder is a file like others. */
bool sp_shared_memory_use(const char *operation);

/* A new one was made: nothing was there before. */
void sp_shared_memory_add(struct sp_shared_memory *memory, const struct stat *st);

/* Whether that object is one of the run's own. What has no name any more is judged by this alone: its
 * former one may be anybody's. */
bool sp_shared_memory_has(const struct sp_shared_memory *memory, const struct stat *st);

/* Whether the path names one of the run's own, or nothing: what is made there then becomes its own, and
 * what is opened without a name is judged again as an object. Nothing else follows a removal. */
bool sp_shared_memory_own(const struct sp_shared_memory *memory, const char *operation,
                          const char *path);

#endif
