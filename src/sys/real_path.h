/* Where a path leads. */
#ifndef SP_SYS_REAL_PATH_H
#define SP_SYS_REAL_PATH_H

#include <limits.h>
#include <stdbool.h>

/* As realpath(): absolute, with all links followed; but in three calls, however deep the path is.
 * false: there is nothing, it cannot be reached, or it has no path of its own; then *ret_path is
 * not changed, and errno says why. The object must be of the tree that this process sees. */
bool sp_real_path(const char *path, char ret_path[PATH_MAX]);

/* One step: what the link `link` leads to, with `rest` behind it. false: it is none, or what comes out
 * is too long. `link` has a slash. */
bool sp_link_step(const char *link, const char *rest, char ret_path[PATH_MAX]);

#endif
