/* What is wrong with a policy, for people: each problem with its place and the line itself. */
#ifndef SP_CLI_PROBLEMS_H
#define SP_CLI_PROBLEMS_H

#include <stdio.h>

#include "policy/problem.h"

/* "FILE:LINE:COLUMN: error: ..." and the line with a mark below. Whatever could act on a terminal
 * is shown escaped. */
void sp_problems_print(const struct sp_problems *problems, FILE *to);

/* Text without anything that could act on a terminal; quotes and backslashes stay. */
void sp_print_escaped(const char *text, FILE *to);

#endif
