/* Hashes of what a guest names, by a key of this run: nobody can make two names that are taken for
 * one another, and so hide the second behind the first.
 */
#ifndef SP_SUPERVISE_KEYED_H
#define SP_SUPERVISE_KEYED_H

#include <stddef.h>
#include <stdint.h>

uint64_t sp_keyed_hash(const void *data, size_t size);

#endif
