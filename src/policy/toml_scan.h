/* What TOML's parser takes badly, found before it sees the text. */
#ifndef SP_POLICY_TOML_SCAN_H
#define SP_POLICY_TOML_SCAN_H

#include <stddef.h>

#include "base/error.h"

/* Refuses, with SP_E_POLICY, line and column, what is no TOML anyway or no policy's: a brace that
 * closes a bracket, on which toml++ 3.3 aborts, and keys of so many parts that tables of tables
 * would exhaust the stack when they are freed. */
int sp_toml_scan(const char *text, size_t size, struct sp_error *reterr) SP_MUST_CHECK;

#endif
