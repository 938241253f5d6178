/* The functions that a trace names, by id: what the numbers in runs stand for. */
#ifndef SP_READ_FUNCTIONS_H
#define SP_READ_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sp_tape;

#define SP_READ_FUNCTIONS_MAX      (1u << 21)
#define SP_READ_FUNCTION_BYTES_MAX (256u << 20)

struct sp_text {
    const char *data;
    uint32_t size;
};

struct sp_function {
    struct sp_text name;
    struct sp_text module; /* size 0: none */
    struct sp_text file;   /* size 0: none */
    int64_t line;          /* 0: none */
    bool native;
    bool known; /* false: an id that no line named */
};

struct sp_functions {
    struct sp_function *items; /* owned, by id; texts owned, one block each */
    uint32_t count;
    uint32_t capacity;
    size_t bytes;
};

void sp_functions_init(struct sp_functions *f);
void sp_functions_release(struct sp_functions *f);

/* Takes in a `function` line. An id named again gets its new name. False: no id that makes
 * sense, more than the maxima above, or no memory. */
bool sp_functions_add(struct sp_functions *f, const struct sp_tape *tape);

/* NULL: not named. Valid until the next add. */
const struct sp_function *sp_functions_get(const struct sp_functions *f, uint32_t id);

#endif
