/* The text of the program that is run, for its `source` line in the trace. */
#ifndef SP_RUN_PROGRAM_TEXT_H
#define SP_RUN_PROGRAM_TEXT_H

#include <limits.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "supervise/sources.h"

struct sp_run;

struct sp_program_text {
    char file[PATH_MAX];
    struct sp_buffer kept;
    struct sp_source source; /* points to the two */
};

/* Reads it as it is now, in the folder of the run: of a script or a folder with a __main__.py, of
 * code given by -c, of a module or package of that name in the folder of the run, of a file given as standard
 * input. false: there is none to be had (an archive, compiled code, a pipe, a module that is found
 * elsewhere, a file that the program itself may not read); *ret_text is then all zeros. */
bool sp_program_text_read(const struct sp_run *run, struct sp_program_text *ret_text);
void sp_program_text_release(struct sp_program_text *text);

#endif
