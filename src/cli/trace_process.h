/* A process of a trace as the views show it. */
#ifndef SP_CLI_TRACE_PROCESS_H
#define SP_CLI_TRACE_PROCESS_H

#include "cli/screen.h"
#include "read/processes.h"

/* Its arguments as in a shell, or that it is a fork of its parent. */
void sp_process_put_program(struct sp_screen *s, const struct sp_process *one);

/* "code 0", "signal 9", "unknown" or "no end". */
void sp_process_put_end(struct sp_screen *s, const struct sp_process *one);

#endif
