/* Members that stand twice in one object. Programs disagree about which of them counts, so that a
 * line could say one thing to one reader and another to the next: no reader of ours takes it.
 */
#ifndef SP_READ_REPEATS_H
#define SP_READ_REPEATS_H

#include <stdbool.h>
#include <stdint.h>

#include "read/tape.h"

#define SP_MEMBERS_MAX 2048u /* of one object; no event has a tenth of that */

enum sp_repeats {
    SP_REPEATS_NONE,
    SP_REPEATS_FOUND,
    SP_REPEATS_TOO_MUCH, /* members of an object */
};

/* Looks through all objects of a line. *ret_node: the second of two equal names. */
enum sp_repeats sp_repeats_find(const struct sp_tape *tape, uint32_t *ret_node);

#endif
