/* The trace's file: without a name while the run lasts, so that no guest can reach it under any
 * policy; linked over its destination at the end.
 */
#ifndef SP_RUN_TRACE_FILE_H
#define SP_RUN_TRACE_FILE_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

struct sp_trace_file {
    int fd;         /* O_TMPFILE; -1: no trace is kept */
    int folder;     /* of the destination, O_PATH */
    bool elsewhere; /* it lies on another file system and is copied at the end */
    bool displaced; /* its folder is gone: it was published to a temporary one */
    char name[NAME_MAX + 1];
    char path[PATH_MAX]; /* absolute; after publishing, where it is */
};

/* Prepares to write to `path`. SP_E_TRACE when nothing can be written there, or when it is a
 * folder or no regular file. */
int sp_trace_file_open(const char *path, struct sp_trace_file *ret_file,
                       struct sp_error *reterr) SP_MUST_CHECK;

/* Whether this process may write in the trace's folder: root without its capabilities may not
 * in another user's. */
bool sp_trace_file_may_publish(const struct sp_trace_file *file);

/* Gives the file its name, in an older one's place. Whatever the guest put there meanwhile
 * (a folder, say) is moved aside. If the folder itself is gone, the trace goes to a temporary
 * folder, and `path` says where. */
int sp_trace_file_publish(struct sp_trace_file *file, struct sp_error *reterr)
    SP_MUST_CHECK;

void sp_trace_file_release(struct sp_trace_file *file);

#endif
