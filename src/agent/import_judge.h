/* Whether an import may go on: judged here, and asked about where the answer is no. */
#ifndef SP_AGENT_IMPORT_JUDGE_H
#define SP_AGENT_IMPORT_JUDGE_H

#include "agent/waiting.h"

/* 0: go on. -1: denied, ImportDenied is set. */
int sp_import_decide(const struct sp_import *import);
/* The same of the file that an extension module is in. */
int sp_import_decide_file(const struct sp_import *import, const char *file,
                          size_t size);

/* Whether imports by libraries are judged like the program's own. */
bool sp_import_judges_libraries(void);

/* How many refusals libraries met that they may do without. */
uint64_t sp_import_refusals(void);
/* An import of the program's own has failed, with an exception set; `before`: as many there were when
 * it began. If one more was met, that was what it failed for: it is told of as denied. */
void sp_import_charge(uint64_t before);

#endif
