/* Handing a command over to the program that has it, installed beside ours. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"

int sp_exec_beside(const struct sp_command *command, char **argv)
{
    char path[PATH_MAX];
    size_t name_size = strlen(command->program);
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n <= 0 || (size_t)n >= sizeof path)
        return sp_cli_error(command->usage_status,
                            "cannot tell where sandpit is installed");
    while (n > 0 && path[n - 1] != '/')
        n--;
    if ((size_t)n + name_size >= sizeof path)
        return sp_cli_error(command->usage_status, "the path of sandpit is too long");
    memcpy(path + n, command->program, name_size + 1);
    argv[0] = path;
    execv(path, argv);
    return sp_cli_error(command->usage_status, "cannot start %s: %m", path);
}
