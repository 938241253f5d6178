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

/* Whether the path is one of sandpit's own files. */
bool sp_fs_own(const struct sp_supervisor *s, const char *path);

/* Whether one of them lies in that folder: it is not moved, or they would be under another path. */
bool sp_fs_holds_own(const struct sp_supervisor *s, const char *folder);

/* Whether the file is the one that no guest reads: by its path, or by what an open object is. */
bool sp_fs_hidden(const struct sp_supervisor *s, const char *path);
bool sp_fs_hidden_object(const struct sp_supervisor *s, int object);

/* Whether the guest's domain restricts reading. */
bool sp_fs_reads_bound(const struct sp_supervisor *s);

/* How the kernel names an object that is open, and a name in a folder that is. false: it has no path,
 * or one that is too long to be known, and the policy in force would have to judge it; where none
 * does, it is called "/". */
bool sp_fs_path_of(const struct sp_supervisor *s, int fd, char to[PATH_MAX])
    SP_MUST_CHECK;
bool sp_fs_path_in(const struct sp_supervisor *s, int folder, const char *name,
                   char to[PATH_MAX]) SP_MUST_CHECK;

/* Asks the policy, and what holds under every one: sandpit's own files are not changed, nor is the
 * hidden one read. true: it is
 * refused, that is recorded, and *ret_answer is the answer. */
bool sp_fs_refused(struct sp_act_call *call, enum sp_list list, const char *operation,
                   const char *path, struct sp_answer *ret_answer);
/* The same for an object that is open, and of which `path` is the name, or the former one. */
bool sp_fs_object_refused(struct sp_act_call *call, enum sp_list list,
                          const char *operation, const char *path, int object,
                          struct sp_answer *ret_answer);

/* Records the denial by a verdict that says no; true as above. */
bool sp_fs_refuses(struct sp_act_call *call, const char *operation, const char *path,
                   const struct sp_verdict *verdict, struct sp_answer *ret_answer);

/* The same for what is denied under every policy. */
struct sp_answer sp_fs_deny(struct sp_act_call *call, const char *operation,
                            const char *path, int err);

/* The answer to a walk that only the guest itself can make: its domain decides. Without one nothing
 * would, where the policy judges. */
struct sp_answer sp_fs_unseen(const struct sp_supervisor *s);

/* Whether the kernel may do it: the guest's domain forbids what the policy does, whatever a
 * racing thread makes of the path. */
bool sp_fs_kernel_decides(const struct sp_supervisor *s, enum sp_list list,
                          const char *path);

/* The same of a name that is made, changed or removed: its folder must be granted. */
bool sp_fs_kernel_names(const struct sp_supervisor *s, enum sp_list list,
                        const char *path);

/* The object is not, or will not be, at that path any more. A right is granted on an object, not on
 * its name: what comes to stand there is not granted. */
void sp_fs_moved(struct sp_supervisor *s, const char *path);

#endif
