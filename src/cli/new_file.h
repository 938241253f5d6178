/* A file that appears under its name only when it is complete. */
#ifndef SP_CLI_NEW_FILE_H
#define SP_CLI_NEW_FILE_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

struct sp_new_file {
    int fd;               /* owned, but for standard output */
    bool in_place;        /* no file to be replaced: written to as it is */
    char path[PATH_MAX];  /* where it will be, links followed */
    char aside[PATH_MAX]; /* its name until then; empty: it has none */
};

/* NULL or "-" is standard output. What exists and is no regular file (a pipe, a device) is
 * written to; a file is replaced. `other`, a descriptor or -1, is what must not be overwritten.
 * 0, or -1 after a message on stderr. */
int sp_new_file_open(const char *path, int other, struct sp_new_file *ret_file);

/* Gives the file its name, or with `keep` false drops it. 0, or -1 after a message. */
int sp_new_file_close(struct sp_new_file *f, bool keep);

#endif
