/* The names of limits, as they stand in policies. */
#include "policy/limit.h"

#include "base/error.h"

const char *sp_limit_name(enum sp_limit limit)
{
    static const char *const names[SP_LIMIT_COUNT] = {
        "wall",      "cpu",  "memory", "processes", "open_files",
        "file_size", "disk", "output", "trace"};
    SP_BUG_ON((unsigned)limit >= SP_LIMIT_COUNT);
    return names[limit];
}
