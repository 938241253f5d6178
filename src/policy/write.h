/* A policy as text again: with all that it inherited, so that it can be read without the files it
 * came from. What is read back decides the same and has the same digest.
 */
#ifndef SP_POLICY_WRITE_H
#define SP_POLICY_WRITE_H

#include "base/buffer.h"
#include "policy/policy.h"

/* TOML; behind each value where it comes from, as "# default.toml:7". */
void sp_policy_write_toml(const struct sp_policy *policy, struct sp_buffer *to);

/* The same as a JSON object: sections with keys and values. */
void sp_policy_write_json(const struct sp_policy *policy, struct sp_buffer *to);

/* Where each value comes from, as a JSON object: by the key's full name a list of places, one for
 * each pattern, or one place. */
void sp_policy_write_places(const struct sp_policy *policy, struct sp_buffer *to);

/* "default.toml:7", or what else is known of the place; "": nothing. */
void sp_policy_place(const struct sp_policy *policy, const struct sp_spot *spot,
                     char *to, size_t size);

/* A limit as policies write it, exactly: "1h", "1500ms", "64MiB", "1000"; 0 is "none". */
void sp_policy_limit_text(enum sp_limit limit, uint64_t value, char *to, size_t size);

#endif
