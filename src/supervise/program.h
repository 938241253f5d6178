/* Which object a call would execute, whether the policy lets it be started, and whether what a
 * process became is what was let through.
 */
#ifndef SP_SUPERVISE_PROGRAM_H
#define SP_SUPERVISE_PROGRAM_H

#include "supervise/paths.h"
#include "supervise/supervisor.h"

struct sp_program {
    char path[PATH_MAX]; /* of the object, canonical */
    bool named;  /* it lies in a folder: no memory file, none that was removed */
    bool script; /* executed by an interpreter */
    char image
        [PATH_MAX]; /* what the process will be: the object, or a script's interpreter */
    uint64_t device; /* of the image */
    uint64_t inode;
};

/* Finds the object in the guest's context. 0, or the negative errno with which the kernel would
 * fail: nothing is there; -EACCES when only the guest itself could walk there. */
int sp_program_find(struct sp_act_call *call, const struct sp_path *path,
                    struct sp_program *ret_program);

/* The verdict on starting it. *ret_target: what the verdict is about, which for a script can be its
 * interpreter. */
struct sp_verdict sp_program_judge(const struct sp_act_call *call,
                                   const struct sp_program *program,
                                   const char **ret_target);

/* The caller has become a new image: compares it with what was let through. false: it is something
 * else, which the policy does not allow; that was recorded, and the process is to be ended. */
bool sp_program_verify(struct sp_act_call *call);

#endif
