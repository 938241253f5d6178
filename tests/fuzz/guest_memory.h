/* A guest whose memory is an input of a fuzz target. The guest is this process, as far as procfs and
 * descriptors go; what is read out of its memory, and written into it, is not. Linked with
 * --wrap for each function that is defined in guest_memory.c.
 */
#ifndef SP_FUZZ_GUEST_MEMORY_H
#define SP_FUZZ_GUEST_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define GUEST_BASE UINT64_C(0x100000)
#define GUEST_SIZE UINT64_C(0x10000)

/* Fills it from its beginning; what lies behind is zero, around it nothing is mapped. */
void guest_memory_set(const uint8_t *data, size_t size);
void guest_memory_put(uint64_t address, uint64_t value);
void guest_memory_get(uint64_t address, void *to, size_t size);

/* From here on this process cannot do to anything what a supervisor does for its guest: change
 * files' names and attributes, connect, send, signal. Exits with 77 (skipped) where that cannot be
 * had. */
void guest_tie_hands(void);

#endif
