/* A document: tables, lists and values as they stand in a file, whatever its notation.
 *
 * Nodes live in the document and are freed with it. A document holds no more than
 * SP_DOCUMENT_NODES_MAX of them, nested no deeper than SP_DOCUMENT_DEPTH_MAX.
 */
#ifndef SP_POLICY_DOCUMENT_H
#define SP_POLICY_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SP_DOCUMENT_NODES_MAX 65536u
#define SP_DOCUMENT_DEPTH_MAX 16u

enum sp_node_type {
    SP_NODE_TABLE,
    SP_NODE_LIST,
    SP_NODE_TEXT,
    SP_NODE_INTEGER,
    SP_NODE_NUMBER, /* with a fraction */
    SP_NODE_BOOL,
    SP_NODE_OTHER, /* a date or a time: in no policy */
    SP_NODE_NONE,  /* a null, of JSON */
};

struct sp_node {
    enum sp_node_type type;
    const char *key; /* in a table; else NULL */
    const char *text;
    size_t text_size; /* a text may hold NULs, which no policy wants */
    int64_t integer;  /* INTEGER, BOOL */
    double number;
    const struct sp_node *parent; /* NULL: the root */
    struct sp_node *first;        /* of a table or list, in the order of the file */
    struct sp_node *last;
    struct sp_node *next;
    unsigned line; /* from 1; 0: not known */
    unsigned column;
    unsigned key_line;
    unsigned key_column;
};

struct sp_document {
    struct sp_node *root; /* a table */
    void *memory;         /* blocks, chained */
    size_t room;
    size_t used;
    unsigned nodes;
    bool failed; /* no memory, or too large */
};

void sp_document_init(struct sp_document *document);
void sp_document_release(struct sp_document *document);

/* For adapters: a node added at the end of `parent` (NULL: the root), and a copy of a text. NULL
 * once the document has failed. */
struct sp_node *sp_document_add(struct sp_document *document, struct sp_node *parent,
                                enum sp_node_type type);
const char *sp_document_text(struct sp_document *document, const char *text,
                             size_t size);

/* How the node is reached from the root: "fs.allow_read[2]"; cut to the size. */
void sp_node_path(const struct sp_node *node, char *to, size_t size);

const struct sp_node *sp_node_find(const struct sp_node *table, const char *key);

/* Reads TOML 1.0 (toml.cpp). SP_E_POLICY with line and column when it is none. */
int sp_document_parse_toml(struct sp_document *document, const char *text, size_t size,
                           struct sp_error *reterr) SP_MUST_CHECK;

#endif
