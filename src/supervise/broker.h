/* Doing for the guest what its Landlock domain does not let it do itself.
 *
 * Under every policy the guest may write by itself only where nothing of the system lies. Any
 * other write is done here: the object is opened O_PATH as the guest sees it, judged by what it
 * is, and then that object, not its name, is opened and handed in. So no racing thread can
 * bring the guest to the files of other processes, to the kernel's settings or to a disk.
 */
#ifndef SP_SUPERVISE_BROKER_H
#define SP_SUPERVISE_BROKER_H

#include "supervise/paths.h"

/* An open with these flags (as the call had them; mode for O_CREAT). */
struct sp_answer sp_broker_open(struct sp_act_call *call, const struct sp_path *path,
                                int flags, unsigned mode);

struct sp_answer sp_broker_truncate(struct sp_act_call *call,
                                    const struct sp_path *path, int64_t size);

/* Whether the descriptor is in a file system through which the kernel is spoken to. */
bool sp_broker_speaks_to_kernel(int fd);

#endif
