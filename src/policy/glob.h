/* Globs: `?` is one character, `*` any number of them, `[a-z]` and `[!a-z]` one of a set or none of
 * it; none of these takes the character where a component ends. `**` takes anything, and with a
 * slash behind it any number of whole components, none included.
 *
 * A text is read once, from its beginning to its end, whatever the pattern: the work is at most the
 * length of the one times the length of the other, and nothing the guest names can make it more.
 */
#ifndef SP_POLICY_GLOB_H
#define SP_POLICY_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Longest glob, its end included. */
#define SP_GLOB_MAX 4096u

struct sp_glob_match {
    bool whole;    /* the text as a whole */
    size_t folder; /* the longest part of it before a separator, 0: none */
};

/* `separator` ends a component, '\0': there are none; `stop` is what * and ? do not take, '\0':
 * they take anything. */
struct sp_glob_match sp_glob_match(const char *pattern, const char *text, size_t size,
                                   char stop, char separator);

/* Whether every bracket of a pattern has its end. */
bool sp_glob_closed(const char *pattern);

#endif
