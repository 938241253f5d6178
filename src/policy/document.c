#include "policy/document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 16384u
#define BYTES_MAX   (32u << 20)

void sp_document_init(struct sp_document *document)
{
    *document = (struct sp_document){0};
}

void sp_document_release(struct sp_document *document)
{
    while (document->memory != NULL) {
        void *next = *(void **)document->memory;
        free(document->memory);
        document->memory = next;
    }
    *document = (struct sp_document){0};
}

/* Zeroed, aligned for anything that is kept here. */
static void *take(struct sp_document *document, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if (document->failed || size > BYTES_MAX) {
        document->failed = true;
        return NULL;
    }
    if (size > document->room - document->used || document->memory == NULL) {
        size_t room = size + 16 > BLOCK_BYTES ? size + 16 : BLOCK_BYTES;
        void *block = calloc(1, room);
        document->failed = block == NULL;
        if (block == NULL)
            return NULL;
        *(void **)block = document->memory;
        document->memory = block;
        document->room = room;
        document->used = 16;
    }
    void *result = (char *)document->memory + document->used;
    document->used += size;
    return result;
}

struct sp_node *sp_document_add(struct sp_document *document, struct sp_node *parent,
                                enum sp_node_type type)
{
    if (document->nodes == SP_DOCUMENT_NODES_MAX)
        document->failed = true;
    struct sp_node *node = take(document, sizeof *node);
    if (node == NULL)
        return NULL;
    document->nodes++;
    node->type = type;
    if (parent == NULL) {
        document->root = node;
        return node;
    }
    node->parent = parent;
    struct sp_node **last = parent->last != NULL ? &parent->last->next : &parent->first;
    *last = node;
    parent->last = node;
    return node;
}

const char *sp_document_text(struct sp_document *document, const char *text,
                             size_t size)
{
    char *copy = take(document, size + 1);
    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

void sp_node_path(const struct sp_node *node, char *to, size_t size)
{
    char above[128] = "";
    unsigned index = 0;
    if (node->parent == NULL) {
        snprintf(to, size, "%s", "");
        return;
    }
    if (node->parent->parent != NULL)
        sp_node_path(node->parent, above, sizeof above);
    for (const struct sp_node *n = node->parent->first; n != node; n = n->next)
        index++;
    if (node->key != NULL)
        snprintf(to, size, "%s%s%s", above, above[0] != '\0' ? "." : "", node->key);
    else
        snprintf(to, size, "%s[%u]", above, index);
}

const struct sp_node *sp_node_find(const struct sp_node *table, const char *key)
{
    for (const struct sp_node *node = table->first; node != NULL; node = node->next)
        if (node->key != NULL && strcmp(node->key, key) == 0)
            return node;
    return NULL;
}
