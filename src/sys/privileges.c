#include "sys/privileges.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int sp_privileges_drop(struct sp_error *reterr)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}, {0}};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return sp_fail_errno(reterr, SP_E_HOST, "cannot forbid new privileges");
    if (syscall(SYS_capget, &header, data) != 0)
        return sp_fail_errno(reterr, SP_E_HOST, "cannot read capabilities");
    if ((data[0].permitted | data[1].permitted | data[0].inheritable |
         data[1].inheritable) == 0)
        return 0;
    /* Dropping from the bounding set needs CAP_SETPCAP; without it no_new_privs alone keeps
     * an exec from gaining any. */
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0;
         capability++)
        (void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    data[0] = data[1] = (struct __user_cap_data_struct){0};
    if (syscall(SYS_capset, &header, data) != 0)
        return sp_fail_errno(reterr, SP_E_HOST, "cannot drop capabilities");
    return 0;
}
