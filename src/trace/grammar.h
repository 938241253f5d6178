/* Whether a line is one well-formed JSON object (RFC 8259, UTF-8 included), and finding a
 * member of one. No values are made: this is what `verify` does with every byte.
 */
#ifndef SP_TRACE_GRAMMAR_H
#define SP_TRACE_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Deeper nesting is refused; our own lines nest three deep. */
#define SP_GRAMMAR_DEPTH_MAX 64u

/* So many bytes after a line must be readable, whatever they hold. */
#define SP_GRAMMAR_PADDING 64u

/* `size` bytes without the newline, which must follow. False: *ret_bad is the position of the
 * first byte that is wrong; `size` when the line ends too early. */
bool sp_grammar_check(const char *line, size_t size, size_t *ret_bad);

/* The same where all up to `from`, which is behind a member of the object, is known to be
 * well-formed. */
bool sp_grammar_check_from(const char *line, size_t size, size_t from, size_t *ret_bad);

/* The text of the value of the outermost object's member `key`, as it stands in the line.
 * The line must be well-formed. False: there is none. */
bool sp_grammar_find(const char *line, size_t size, const char *key,
                     const char **ret_value, size_t *ret_size);

/* A JSON integer that fits. `size` bytes, all of them. */
bool sp_grammar_uint(const char *text, size_t size, uint64_t *ret_value);

#endif
