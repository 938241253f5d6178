#include "read/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void sp_spool_init(struct sp_spool *s)
{
    *s = (struct sp_spool){.fd = -1};
}

void sp_spool_release(struct sp_spool *s)
{
    if (s->fd >= 0)
        close(s->fd);
    sp_spool_init(s);
}

void sp_spool_part_init(struct sp_spool_part *p)
{
    *p = (struct sp_spool_part){0};
}

void sp_spool_part_release(struct sp_spool_part *p)
{
    free(p->block);
    free(p->offsets);
    sp_spool_part_init(p);
}

static int failed(struct sp_spool *s, int err)
{
    s->err = err;
    return -1;
}

static int open_file(struct sp_spool *s)
{
    const char *folder = getenv("TMPDIR");
    char path[PATH_MAX];
    if (folder == NULL || *folder == '\0')
        folder = "/tmp";
    s->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
    if (s->fd >= 0)
        return 0;
    /* A file system that has no unnamed files. */
    const int n = snprintf(path, sizeof path, "%s/sandpit-export-XXXXXX", folder);
    if (n < 0 || (size_t)n >= sizeof path)
        return failed(s, ENAMETOOLONG);
    s->fd = mkostemp(path, O_CLOEXEC);
    if (s->fd < 0)
        return failed(s, errno);
    unlink(path);
    return 0;
}

static int write_block(struct sp_spool *s, const char *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n =
            pwrite(s->fd, data + done, size - done, (off_t)(s->size + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return failed(s, n < 0 ? errno : EIO);
        done += (size_t)n;
    }
    s->size += size;
    return 0;
}

/* Writes the block in memory to the file. */
static int put_away(struct sp_spool *s, struct sp_spool_part *p)
{
    if (s->fd < 0 && open_file(s) < 0)
        return -1;
    if (p->count == p->capacity) {
        const uint32_t capacity = p->capacity == 0 ? 8 : p->capacity * 2;
        uint64_t *offsets = realloc(p->offsets, capacity * sizeof *offsets);
        if (offsets == NULL)
            return failed(s, ENOMEM);
        p->offsets = offsets;
        p->capacity = capacity;
    }
    p->offsets[p->count] = s->size;
    if (write_block(s, p->block, p->used) < 0)
        return -1;
    p->count++;
    p->last_size = p->used;
    p->used = 0;
    return 0;
}

int sp_spool_append(struct sp_spool *s, struct sp_spool_part *p, const void *data,
                    size_t size)
{
    if (p->block == NULL && (p->block = malloc(SP_SPOOL_BLOCK)) == NULL)
        return failed(s, ENOMEM);
    if (p->used + size > SP_SPOOL_BLOCK && put_away(s, p) < 0)
        return -1;
    memcpy(p->block + p->used, data, size);
    p->used += (uint32_t)size;
    return 0;
}

int sp_spool_end(struct sp_spool *s, struct sp_spool_part *p)
{
    if (p->block == NULL)
        return 0;
    if (p->used > 0 && s->kept + SP_SPOOL_BLOCK <= SP_SPOOL_KEEP_MAX) {
        s->kept += SP_SPOOL_BLOCK;
        return 0;
    }
    if (p->used > 0 && put_away(s, p) < 0)
        return -1;
    free(p->block);
    p->block = NULL;
    return 0;
}

int sp_spool_read(struct sp_spool *s, const struct sp_spool_part *p, uint32_t i,
                  char *ret_data)
{
    if (i == p->count && p->block != NULL) {
        memcpy(ret_data, p->block, p->used);
        return (int)p->used;
    }
    if (i >= p->count)
        return 0;
    const size_t size = i + 1 == p->count ? p->last_size : SP_SPOOL_BLOCK;
    for (size_t done = 0; done < size;) {
        const ssize_t n =
            pread(s->fd, ret_data + done, size - done, (off_t)(p->offsets[i] + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return failed(s, n < 0 ? errno : EIO);
        done += (size_t)n;
    }
    return (int)size;
}
