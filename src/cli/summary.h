/* What is said on a terminal when a run is over. */
#ifndef SP_CLI_SUMMARY_H
#define SP_CLI_SUMMARY_H

#include <stdbool.h>

struct sp_run;
struct sp_outcome;

/* To stderr, in at most a screen: status, counts, violations with line and remedy, the trace. */
void sp_summary_print(const struct sp_run *run, const struct sp_outcome *outcome,
                      bool color);

#endif
