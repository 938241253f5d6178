/* One line of JSON as an array of nodes in the order of the text. Behind this header stands
 * simdjson; nothing else of it is seen by C code.
 *
 * An object's node is followed by its members, each a string node (the name) and then the
 * value; an array's by its values. `next` leads past a node and all it holds.
 *
 * Strings are given as the bytes that were recorded: \udcXX stands for a byte that was no
 * UTF-8 (see base/json.h) and becomes that byte again; other lone surrogates become the three
 * bytes they would have as UTF-8.
 */
#ifndef SP_READ_TAPE_H
#define SP_READ_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A run of 4,096 has 8,192 numbers, in the worst case twice that. */
#define SP_TAPE_NODES_MAX (1u << 17)
#define SP_TAPE_DEPTH_MAX 64u

enum sp_json_type {
    SP_JSON_NULL,
    SP_JSON_BOOL,
    SP_JSON_INT,
    SP_JSON_UINT, /* greater than INT64_MAX */
    SP_JSON_REAL,
    SP_JSON_STRING,
    SP_JSON_ARRAY,
    SP_JSON_OBJECT,
};

struct sp_json_node {
    uint8_t type;  /* enum sp_json_type */
    uint32_t next; /* index of the node behind it and what it holds */
    uint32_t size; /* STRING: bytes; ARRAY, OBJECT: values, members */
    union {
        bool boolean;
        int64_t integer;
        uint64_t natural;
        double real;
        const char
            *text; /* not terminated; valid until the next parse, as the line is */
    };
};

struct sp_tape {
    struct sp_json_node *nodes; /* owned; nodes[0] is the line's object */
    uint32_t count;
    uint32_t capacity;
    char *text; /* owned: strings that had escapes */
    size_t text_used;
    size_t text_capacity;
    void *parser; /* owned */
};

enum sp_tape_result {
    SP_TAPE_OK,
    SP_TAPE_MALFORMED, /* not a JSON object, or a number that fits into nothing */
    SP_TAPE_TOO_MUCH,  /* nested too deep, or too many values */
    SP_TAPE_NO_MEMORY,
};

void sp_tape_init(struct sp_tape *t);
void sp_tape_release(struct sp_tape *t);

/* `size` bytes without a newline, followed by SP_LINES_PADDING readable ones. */
enum sp_tape_result sp_tape_parse(struct sp_tape *t, const char *line, size_t size);

/* Index of the value of member `key` of the object at `object`; 0 when there is none. */
uint32_t sp_tape_find(const struct sp_tape *t, uint32_t object, const char *key);

/* Of a member of the line's object, when it has the type; else NULL or `otherwise`. */
const struct sp_json_node *sp_tape_text(const struct sp_tape *t, const char *key);
int64_t sp_tape_int(const struct sp_tape *t, const char *key, int64_t otherwise);
bool sp_tape_true(const struct sp_tape *t, const char *key);

/* Whether a string node holds exactly this text. NULL accepted. */
bool sp_node_is(const struct sp_json_node *node, const char *text);

#ifdef __cplusplus
}
#endif

#endif
