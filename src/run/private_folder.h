/* The folder of a run that is nobody else's: made before it, removed with all in it afterwards. */
#ifndef SP_RUN_PRIVATE_FOLDER_H
#define SP_RUN_PRIVATE_FOLDER_H

#include <limits.h>

#include "base/error.h"

/* Below $TMPDIR, or /tmp; canonical. */
int sp_private_folder_make(char to[PATH_MAX], struct sp_error *reterr) SP_MUST_CHECK;

/* Whatever modes the guest gave to what is in it. Follows no link. */
void sp_private_folder_remove(const char *path);

#endif
