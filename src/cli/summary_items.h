/* What the summary of a trace lists in one line: as many names as fit, those of most concern
 * first.
 */
#ifndef SP_CLI_SUMMARY_ITEMS_H
#define SP_CLI_SUMMARY_ITEMS_H

#include <stdbool.h>

#include "cli/screen.h"
#include "read/tally.h"

/* Where the program ran, to tell its own files from others. */
struct sp_items_place {
    struct sp_text folder; /* that it ran in */
    struct sp_text python; /* the interpreter */
};

/* The items of a tally, into the line in hand. What does not fit is counted. Unless all are to be
 * named, a long list gives of the interpreter's and its packages' files the number only. */
void sp_items_put(struct sp_screen *s, const struct sp_tally *t,
                  const struct sp_items_place *place, bool all_named);

/* A path of the folder without it; any other as it is. */
struct sp_text sp_items_shortened(struct sp_text path, struct sp_text folder);

/* What stands behind the last slash, unless that is nothing. */
struct sp_text sp_items_last_part(struct sp_text path);

#endif
