/* A path that a notified call names: as it was written, and where it leads now as the guest
 * sees it.
 */
#ifndef SP_SUPERVISE_PATHS_H
#define SP_SUPERVISE_PATHS_H

#include <limits.h>
#include <stdbool.h>

#include "supervise/supervisor.h"

struct sp_path {
    int dirfd;            /* the guest's number, or AT_FDCWD */
    char asked[PATH_MAX]; /* "": the descriptor itself */
    char text[PATH_MAX];  /* absolute; links are followed but for what cannot be */
    int error; /* why there is no object there (ENOENT ...), 0: there is one; EACCES
                             also when only the guest itself can walk there */
    bool only_guest; /* it is that */
    bool stray;      /* nor can its folder be found */
    bool slash;      /* it ends with one */
    unsigned mode;   /* of the object, 0: there is none */
};

/* What a symbolic link at the end of a path means. */
enum sp_last {
    SP_LAST_KEPT,     /* itself, unless there is a slash behind it */
    SP_LAST_FOLLOWED, /* what it leads to */
    SP_LAST_NAMED,    /* itself: it is the name that is changed */
};

/* Copies the path once. `address` 0: the descriptor itself. 0 or a negative errno: -EFAULT when
 * the guest's memory cannot be read, -ESRCH when the thread is gone, the kernel's for a path that
 * is none. What could not be read may not go on to the kernel: a thread can make it readable
 * again. */
int sp_path_read(const struct sp_act_call *call, int dirfd, uint64_t address,
                 enum sp_last last, struct sp_path *ret_path);

/* The same of a path that was copied already. */
int sp_path_take(const struct sp_act_call *call, int dirfd, const char *asked,
                 enum sp_last last, struct sp_path *ret_path);

/* Where a file is made when `path` is a link that leads nowhere. true: it is one. */
bool sp_path_pursue(struct sp_act_call *call, const struct sp_path *path,
                    struct sp_path *ret_target);

/* What a path ends in, slashes behind it aside: a name, `.`, `..`, or nothing (the root folder). */
enum sp_ending { SP_ENDING_PLAIN, SP_ENDING_DOT, SP_ENDING_DOTS, SP_ENDING_NONE };
enum sp_ending sp_path_ending(const struct sp_path *path);

/* O_PATH descriptors in the guest's context, or a negative errno: of the object (flags as
 * O_NOFOLLOW), and of its folder, with the last name as it was written. */
int sp_path_open(struct sp_act_call *call, const struct sp_path *path, int flags);
int sp_path_open_folder(struct sp_act_call *call, const struct sp_path *path,
                        char ret_name[NAME_MAX + 2]);

/* The folder and the last name of a path, as they are written. 0, -ENAMETOOLONG, or -EBUSY for the
 * root folder. */
int sp_path_split(const char *path, char ret_folder[PATH_MAX],
                  char ret_name[NAME_MAX + 2]);

/* Whether the guest's Landlock domain lets it write there: the kernel has the last word then,
 * and the call can be left to it. */
bool sp_path_writable(const struct sp_supervisor *s, const struct sp_path *path);

#endif
