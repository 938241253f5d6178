/* Appending JSON to a buffer: what the trace writer and the result use.
 *
 * Strings from the guest are bytes of unknown encoding. They are written as UTF-8; a byte
 * that is not part of well-formed UTF-8 becomes \udcXX, the escape that Python's
 * "surrogateescape" uses, so that nothing is lost and every line stays valid JSON. Control
 * characters (C0, DEL, C1) and U+2028/2029 are escaped, so that a line printed on a
 * terminal does nothing.
 */
#ifndef SP_BASE_JSON_H
#define SP_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

void sp_json_string(struct sp_buffer *b, const char *text,
                    size_t size); /* quotes included */

/* The same without quotes. `replace`: a byte that is no UTF-8 becomes U+FFFD instead; the result
 * is false when there was one. */
bool sp_json_chars(struct sp_buffer *b, const char *text, size_t size, bool replace);

/* How much of a longer text can be taken without cutting a UTF-8 sequence at its end. */
size_t sp_json_whole(const char *text, size_t size);

void sp_json_uint(struct sp_buffer *b, uint64_t value);
void sp_json_int(struct sp_buffer *b, int64_t value);

/* `"key":` preceded by a comma unless the last byte is '{' or '['. The key is ours: it is
 * written as it is. */
void sp_json_key(struct sp_buffer *b, const char *key);

#endif
