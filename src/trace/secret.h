/* What looks like a secret, by its shape: keys and tokens of well-known services, private keys,
 * passwords in addresses.
 */
#ifndef SP_TRACE_SECRET_H
#define SP_TRACE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* The part of a text that must not be kept. */
struct sp_secret {
    size_t start;
    size_t end;
};

/* What was looked at in vain, of a text that is gone through from its beginning: begun with zeros. Without
 * it a text made for that, one beginning of a token after the other, would be walked to its end from
 * each. */
struct sp_secret_scan {
    size_t runless_until;  /* no token that needs a run of letters ends before it */
    size_t bodiless_until; /* no web token's head */
};

/* Whether something that begins at `at` is one. `text` is JSON, so that the string it is in ends at
 * a quote, and a line's end in it is written as an escape. */
bool sp_secret_at(struct sp_secret_scan *scan, const char *text, size_t size, size_t at,
                  struct sp_secret *ret_secret);

/* Whether a value of that name is one: "password", "--api-key", "GITHUB_TOKEN". */
bool sp_secret_name(const char *name, size_t size);

#endif
