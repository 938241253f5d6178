/* What the policy says about an object of the file system, as the run sees it.
 *
 * The policy knows paths. Around it stand what is the same for every run: devices that hold
 * nothing, what has no name, the run's own processes in procfs, shared memory that the run made.
 */
#ifndef SP_SUPERVISE_FS_JUDGE_H
#define SP_SUPERVISE_FS_JUDGE_H

#include "supervise/paths.h"

/* `path` as the kernel names the object (what /proc/self/fd/N says), or, of what does not exist
 * yet, its folder's with the new name. `list`: SP_LIST_READ or SP_LIST_WRITE. */
struct sp_verdict sp_fs_verdict(struct sp_act_call *call, enum sp_list list,
                                const char *path);

/* The same of an object that is open; its path is written to `ret_path`. */
struct sp_verdict sp_fs_verdict_of(struct sp_act_call *call, enum sp_list list, int fd,
                                   char ret_path[PATH_MAX]);

/* The same of a name in a folder that is open. */
struct sp_verdict sp_fs_verdict_in(struct sp_act_call *call, enum sp_list list,
                                   int folder, const char *name,
                                   char ret_path[PATH_MAX]);

/* Records a denial and refuses the call: true, and *ret_answer is the answer. false: it is
 * allowed. */
bool sp_fs_refuses(struct sp_act_call *call, const char *operation, const char *path,
                   const struct sp_verdict *verdict, struct sp_answer *ret_answer);

/* The same for what is denied under every policy. */
struct sp_answer sp_fs_deny(struct sp_act_call *call, const char *operation,
                            const char *path, int err);

/* Whether the kernel may do it: the guest's domain forbids what the policy does, whatever a
 * racing thread makes of the path. */
bool sp_fs_kernel_decides(const struct sp_supervisor *s, enum sp_list list,
                          const char *path);

#endif
