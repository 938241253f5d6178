/* The fields of a trace's first line. */
#ifndef SP_RUN_START_RECORD_H
#define SP_RUN_START_RECORD_H

#include <stddef.h>
#include <stdint.h>

struct sp_run;
struct sp_trace_writer;

/* Adds them to the `start` event that was begun. python_version: PY_VERSION_HEX, 0 unknown. */
void sp_start_record(const struct sp_run *run, struct sp_trace_writer *w,
                     uint32_t python_version);

/* "3.11.7" for a PY_VERSION_HEX. */
void sp_python_version_text(uint32_t hex, char *to, size_t size);

#endif
