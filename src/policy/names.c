/* Words of policies, as they stand in files. */
#include "policy/policy.h"

const char *sp_list_name(enum sp_list list)
{
    static const char *const names[SP_LIST_COUNT] = {
        "imports", "clients", "read", "write", "network", "process", "env"};
    SP_BUG_ON((unsigned)list >= SP_LIST_COUNT);
    return names[list];
}
