/* The folder of a run that is nobody else's: made before it, removed with all in it afterwards.
 *
 * While a run lasts its processes hold a lock on the folder. One that nobody holds was left by a
 * crash, and may be removed by anyone who may: see sp_private_folder_sweep.
 */
#ifndef SP_RUN_PRIVATE_FOLDER_H
#define SP_RUN_PRIVATE_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct sp_private_folder {
    int fd;              /* holds the lock; -1: there is none */
    char path[PATH_MAX]; /* canonical; "": there is none */
};

/* Below $TMPDIR, or /tmp. */
int sp_private_folder_make(struct sp_private_folder *folder, struct sp_error *reterr)
    SP_MUST_CHECK;

/* Whatever the guest made of it, whose processes are all gone. After `patience_ns` a process of
 * its own goes on with what is left, and nobody waits for it. */
void sp_private_folder_remove(struct sp_private_folder *folder, uint64_t patience_ns);

/* What becomes of a leftover. */
enum sp_leftover {
    SP_LEFTOVER_FOUND, /* it was only looked for */
    SP_LEFTOVER_REMOVED,
    SP_LEFTOVER_FAILED, /* some of it cannot be removed */
};

/* Removes, or with `look_only` finds, the private folders of runs that are over, by this user, in
 * `base`. The API's folders are among them. false when `base` cannot be read. */
bool sp_private_folder_sweep(const char *base, bool look_only,
                             void (*found)(void *context, const char *path,
                                           enum sp_leftover what),
                             void *context);

#endif
