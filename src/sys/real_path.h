/* Where a path leads. */
#ifndef SP_SYS_REAL_PATH_H
#define SP_SYS_REAL_PATH_H

#include <limits.h>
#include <stdbool.h>

/* An O_PATH descriptor (`flags` as O_NOFOLLOW) of what lies at a path that says by itself where it
 * leads: an absolute one, with no `.`, `..` or doubled slash in it, of which no name is a link. It
 * means the same to whoever walks it, but for procfs. -1 with errno; ELOOP also where the path is
 * none of these, ENOENT only where it is, as far as it goes. */
int sp_open_plain(const char *path, int flags);

/* As realpath(): absolute, with all links followed; but in few calls, however deep the path is.
 * false: there is nothing, it cannot be reached, or it has no path of its own; then *ret_path is
 * not changed, and errno says why. The object must be of the tree that this process sees. */
bool sp_real_path(const char *path, char ret_path[PATH_MAX]);

/* One step: what the link `link` leads to, with `rest` behind it. false: it is none, or what comes out
 * is too long. `link` has a slash. */
bool sp_link_step(const char *link, const char *rest, char ret_path[PATH_MAX]);

#endif
