/* The numbers of a `run` line: what a program at level `all` costs is mostly this. */
#ifndef SP_TRACE_RUNS_H
#define SP_TRACE_RUNS_H

#include <stdint.h>

#include "base/buffer.h"

struct sp_trace_run;

/* Appends `,"n":N,"f":[...],"dt":[...]`, and `raised` and `resumed` where there are any. */
void sp_runs_append(struct sp_buffer *b, const struct sp_trace_run *run);

#endif
