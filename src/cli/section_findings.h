/* What a machine does about each section of a policy: who enforces it, and what is missing where it
 * cannot be kept. It is the plan's own answer, for a policy that restricts everything.
 */
#ifndef SP_CLI_SECTION_FINDINGS_H
#define SP_CLI_SECTION_FINDINGS_H

#include <stdbool.h>

#include "base/buffer.h"

enum sp_section {
    SP_SECTION_IMPORTS,
    SP_SECTION_FS,
    SP_SECTION_NETWORK,
    SP_SECTION_PROCESS,
    SP_SECTION_ENV,
    SP_SECTION_LIMITS,
    SP_SECTION_COUNT
};

struct sp_section_finding {
    const char *name;
    bool kept;
    char missing[24];      /* the ability, "": none */
    char why[512];         /* it cannot be kept, "": it can */
    char enforced_by[200]; /* a JSON array of layers */
};

struct sp_section_findings {
    bool made; /* false: `why` of the first says what keeps a plan from being made */
    struct sp_section_finding all[SP_SECTION_COUNT];
    struct sp_buffer recorded_by; /* a JSON object, by kind of event */
};

/* `python` as given by --python, or NULL. Released with sp_section_findings_release(). */
void sp_section_findings_make(struct sp_section_findings *ret_findings,
                              const char *python);
void sp_section_findings_release(struct sp_section_findings *findings);

#endif
