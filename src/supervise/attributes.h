/* Changes of what is known about a file: mode, owner, times, extended attributes. The kernel's
 * sandbox has no right for them: where the policy judges changes, they are done here, on the object
 * that was judged.
 */
#ifndef SP_SUPERVISE_ATTRIBUTES_H
#define SP_SUPERVISE_ATTRIBUTES_H

#include "supervise/paths.h"

/* `path` is what the call names (asked "": its descriptor). */
struct sp_answer sp_attributes_decide(struct sp_act_call *call, const char *op,
                                      const struct sp_path *path);

/* AT_ flags of such a call, or of linkat. 0: it has none. */
int sp_attributes_flags(const struct sp_act_call *call);

/* Whether the call changes a link itself, when its path ends in one. */
bool sp_attributes_of_link(const struct sp_act_call *call);

/* An ioctl that sets attributes (FS_IOC_SETFLAGS and its like). */
struct sp_answer sp_act_file_ioctl(struct sp_act_call *call);

#endif
