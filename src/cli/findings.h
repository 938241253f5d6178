/* What `sandpit doctor` looks at: each layer's presence on this machine, in a sentence. */
#ifndef SP_CLI_FINDINGS_H
#define SP_CLI_FINDINGS_H

#include <limits.h>
#include <stddef.h>

#include "sys/host.h"

enum sp_presence {
    SP_PRESENT,
    SP_PARTLY, /* every policy can be enforced, at a cost that the detail names */
    SP_MISSING,
};

struct sp_finding {
    const char *section; /* what it is there for */
    const char *name; /* of a layer, as --allow-degraded and SANDPIT_REQUIRE know it */
    enum sp_presence presence;
    char detail[PATH_MAX + 256];
    const char *remedy; /* NULL: nothing to do */
};

enum sp_found {
    SP_FOUND_LANDLOCK,
    SP_FOUND_LISTENER,
    SP_FOUND_LIMITS,
    SP_FOUND_ARGUMENTS,
    SP_FOUND_AGENT,
    SP_FOUND_TRACE,
    SP_FOUND_PYTHON,
    SP_FOUND_COUNT
};

struct sp_findings {
    struct sp_host host;
    struct sp_finding all[SP_FOUND_COUNT]; /* by enum sp_found, sections together */
};

/* Looks at everything. `python` as given by --python, or NULL; the interpreter is started once,
 * unconfined, to ask for its version. */
void sp_findings_make(struct sp_findings *ret_findings, const char *python);

/* How many are missing. */
int sp_findings_missing(const struct sp_findings *findings);

#endif
