/* Changes of names: made, removed, moved, linked; judged, and done for the guest where its own
 * domain does not let it.
 */
#ifndef SP_SUPERVISE_CHANGES_H
#define SP_SUPERVISE_CHANGES_H

#include "supervise/paths.h"

enum sp_change_kind {
    SP_CHANGE_MKDIR,
    SP_CHANGE_MKNOD,
    SP_CHANGE_SYMLINK,
    SP_CHANGE_REMOVE,
    SP_CHANGE_RMDIR,
    SP_CHANGE_RENAME,
    SP_CHANGE_LINK,
};

struct sp_change {
    enum sp_change_kind kind;
    const char *op; /* as events call it */
    const struct sp_path *path;
    const struct sp_path *to; /* RENAME, LINK */
    unsigned mode;            /* MKDIR, MKNOD: with the kind of node */
    unsigned flags;           /* RENAME: as renameat2; LINK: as linkat */
    uint64_t target;          /* SYMLINK: address of its text in the guest */
};

/* Decides, and does it unless the kernel can be left to it. */
struct sp_answer sp_change_decide(struct sp_act_call *call,
                                  const struct sp_change *change);

#endif
