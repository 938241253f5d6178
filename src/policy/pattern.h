/* What a pattern may look like, and how paths and names are compared with it. */
#ifndef SP_POLICY_PATTERN_H
#define SP_POLICY_PATTERN_H

#include "policy/policy.h"

/* Works out shape, port and address of a pattern of that list. `to` gets the text that is
 * compared: the pattern without a trailing slash, a host in lower case without its port; a path
 * whose every wildcard stands in brackets ("[*]") as the plain path that it is.
 * SP_E_POLICY: *reterr says what is wrong with it. */
int sp_pattern_parse(enum sp_list list, const char *pattern,
                     struct sp_policy_rule *ret_rule, char *to, size_t size,
                     struct sp_error *reterr) SP_MUST_CHECK;

/* A path or part of one as the pattern that means just it: wildcards and braces stand in brackets.
 * Returns the length that it has, like snprintf. */
size_t sp_pattern_escape(const char *path, char *to, size_t size);

/* Longest pattern and path that are kept, their ends included. */
#define SP_PATTERN_TEXT_MAX 4096u

/* How well a rule fits; higher is more specific, 0 is no match. */
typedef uint32_t sp_fit;

/* Paths: the object itself; a glob of its last component; a longer folder; a shorter one; any.
 * Globs are those of glob.h; a pattern covers what is below what it matches. */
sp_fit sp_pattern_fit_path(enum sp_shape shape, const char *pattern, const char *path);

/* Names with parts, as modules' ("xml" covers "xml.dom") and variables' (no parts). */
sp_fit sp_pattern_fit_name(enum sp_shape shape, const char *pattern, const char *name,
                           char separator);

/* Whether a whole text is matched by a glob of one component. */
bool sp_pattern_glob(const char *pattern, const char *text);

/* Whether a path is the folder or lies below it. */
bool sp_pattern_below(const char *path, const char *folder);

/* Whether a glob of paths may match something below the folder. */
bool sp_pattern_reaches(const char *pattern, const char *folder);

/* The folder before the first wildcard of a path pattern, without a trailing slash; its length.
 * 0: there is none. */
size_t sp_pattern_fixed(const char *pattern);

#endif
