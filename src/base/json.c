#include "base/json.h"

#include <string.h>

/* Length of the well-formed UTF-8 sequence at p (RFC 3629), 0 if there is none. */
static size_t sequence(const unsigned char *p, size_t left)
{
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    size_t n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (left < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

static char *unicode_escape(char *to, unsigned value)
{
    static const char hex[] = "0123456789abcdef";
    *to++ = '\\';
    *to++ = 'u';
    for (int shift = 12; shift >= 0; shift -= 4)
        *to++ = hex[(value >> shift) & 15];
    return to;
}

static char *escape(char *to, unsigned char c)
{
    static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (size_t i = 0; i + 1 < sizeof shorts; i += 2)
        if ((unsigned char)shorts[i] == c) {
            *to++ = '\\';
            *to++ = shorts[i + 1];
            return to;
        }
    return unicode_escape(to, c);
}

bool sp_json_chars(struct sp_buffer *b, const char *text, size_t size, bool replace)
{
    const unsigned char *p = (const unsigned char *)text;
    bool clean = true;
    char *start = sp_buffer_reserve(b, size * 6);
    if (start == NULL)
        return false;
    char *to = start;
    for (size_t i = 0; i < size;) {
        unsigned char c = p[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            *to++ = (char)c;
            i++;
            continue;
        }
        size_t n = sequence(p + i, size - i);
        if (n == 0) {
            clean = false;
            to = unicode_escape(to, replace ? 0xfffdu : 0xdc00u | c);
        } else if (n == 1) {
            to = escape(to, c);
        } else if (n == 2 && c == 0xc2 && p[i + 1] < 0xa0) {
            to = unicode_escape(to, p[i + 1]);
        } else if (n == 3 && c == 0xe2 && p[i + 1] == 0x80 && (p[i + 2] | 1) == 0xa9) {
            to = unicode_escape(to, 0x2000u | (p[i + 2] & 0x3f));
        } else {
            memcpy(to, p + i, n);
            to += n;
        }
        i += n == 0 ? 1 : n;
    }
    sp_buffer_advance(b, (size_t)(to - start));
    return clean;
}

void sp_json_string(struct sp_buffer *b, const char *text, size_t size)
{
    if (sp_buffer_reserve(b, size * 6 + 2) == NULL)
        return;
    sp_buffer_append(b, "\"", 1);
    (void)sp_json_chars(b, text, size, false);
    sp_buffer_append(b, "\"", 1);
}

size_t sp_json_whole(const char *text, size_t size)
{
    /* At most the three bytes after a lead byte can be missing. */
    for (size_t back = 1; back <= 3 && back <= size; back++) {
        unsigned char c = (unsigned char)text[size - back];
        size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        if (c >= 0xc0)
            return length > back ? size - back : size;
        if (c < 0x80)
            break;
    }
    return size;
}

void sp_json_uint(struct sp_buffer *b, uint64_t value)
{
    char digits[20];
    int n = 20;
    do {
        digits[--n] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    sp_buffer_append(b, digits + n, (size_t)(20 - n));
}

void sp_json_int(struct sp_buffer *b, int64_t value)
{
    if (value < 0) {
        sp_buffer_append(b, "-", 1);
        sp_json_uint(b, 0 - (uint64_t)value);
    } else {
        sp_json_uint(b, (uint64_t)value);
    }
}

void sp_json_key(struct sp_buffer *b, const char *key)
{
    char *to = sp_buffer_reserve(b, strlen(key) + 4);
    if (to == NULL)
        return;
    size_t n = 0;
    if (b->size > 0 && b->data[b->size - 1] != '{' && b->data[b->size - 1] != '[')
        to[n++] = ',';
    to[n++] = '"';
    size_t length = strlen(key);
    memcpy(to + n, key, length);
    n += length;
    to[n++] = '"';
    to[n++] = ':';
    sp_buffer_advance(b, n);
}
