/* Sequences of records that grow side by side and are read one after the other: kept in an
 * unnamed temporary file (in $TMPDIR or /tmp), each with one block of memory. Short ones never
 * reach the file.
 */
#ifndef SP_READ_SPOOL_H
#define SP_READ_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#define SP_SPOOL_BLOCK    4096u       /* bytes; a multiple of what is appended */
#define SP_SPOOL_KEEP_MAX (16u << 20) /* bytes of ended sequences that stay in memory */

struct sp_spool {
    int fd;        /* owned; -1: no file was needed yet */
    uint64_t size; /* of the file */
    size_t kept;   /* bytes in blocks of ended sequences */
    int err;       /* errno of what failed */
};

struct sp_spool_part {
    char *block;       /* owned; the last block; NULL: none */
    uint32_t used;     /* bytes in it */
    uint64_t *offsets; /* owned; of the blocks in the file */
    uint32_t count;
    uint32_t capacity;
    uint32_t last_size; /* of the last block in the file, when `block` was given up */
};

void sp_spool_init(struct sp_spool *s);
void sp_spool_release(struct sp_spool *s);

void sp_spool_part_init(struct sp_spool_part *p);
void sp_spool_part_release(struct sp_spool_part *p);

/* `size` divides SP_SPOOL_BLOCK. 0, or -1 with s->err. */
int sp_spool_append(struct sp_spool *s, struct sp_spool_part *p, const void *data,
                    size_t size);

/* No more will be appended: memory is given back when much of it is taken. 0 or -1. */
int sp_spool_end(struct sp_spool *s, struct sp_spool_part *p);

/* The i-th block into `ret_data`, which holds SP_SPOOL_BLOCK bytes. Its size, 0 behind the last
 * one, or -1 with s->err. */
int sp_spool_read(struct sp_spool *s, const struct sp_spool_part *p, uint32_t i,
                  char *ret_data);

#endif
