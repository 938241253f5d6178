/* Which interpreter a run uses, and where its own code lies: found from names and layout, never
 * by starting it in each run.
 */
#ifndef SP_PLAN_INTERPRETER_H
#define SP_PLAN_INTERPRETER_H

#include <limits.h>
#include <stddef.h>

#include "base/error.h"

#define SP_ROOTS_BYTES (4u * PATH_MAX)

struct sp_interpreter {
    char path[PATH_MAX]; /* what is executed: absolute, an ELF file */
    char name[PATH_MAX]; /* argv[0] */
    /* How the paths of {python} begin, each NUL-terminated, an empty one ends: standard
     * library and installed packages, of the environment and of what it was made from. */
    char roots[SP_ROOTS_BYTES];
    size_t roots_size;
    /* The folders that the roots are below: the environment's and that of what it was made
     * from, canonical, each NUL-terminated, an empty one ends. */
    char prefixes[SP_ROOTS_BYTES];
    size_t prefixes_size;
    char version
        [16]; /* "3.11", "3.13t", as the file's name has it; "" when it does not say */
};

/* `asked` as given (--python), or NULL: the active virtual environment's, the one beside this
 * program, `python3` on PATH. A launcher that is no ELF file is asked once which interpreter
 * it starts, outside any confinement; the answer is kept in the user's cache folder and holds
 * as long as the launcher, the folder and the version manager's settings stay the same.
 * SP_E_NOT_FOUND when there is none. */
int sp_interpreter_find(const char *asked, struct sp_interpreter *ret_interpreter,
                        struct sp_error *reterr) SP_MUST_CHECK;

#endif
