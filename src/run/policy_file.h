/* Policies in files, with the ones that they extend, and all that is wrong with them.
 */
#ifndef SP_RUN_POLICY_FILE_H
#define SP_RUN_POLICY_FILE_H

#include <sys/types.h>

#include "policy/read.h"

#define SP_EXTENDS_DEPTH_MAX 8u

/* What is kept while one policy is read. `problems` is the caller's and begins empty. */
struct sp_policy_loader {
    struct sp_problems *problems;
    struct sp_policy *owned[SP_EXTENDS_DEPTH_MAX]; /* those extended */
    unsigned owned_count;
    struct {
        const char *path;
        dev_t device;
        ino_t inode;
    } reading[SP_EXTENDS_DEPTH_MAX]; /* a circle has no end */
    unsigned depth;
};

void sp_policy_loader_release(struct sp_policy_loader *loader);

/* Each makes a model, which the caller releases. SP_E_POLICY: one sentence in *reterr, and all
 * problems of the text, if it could be read at all, in loader->problems. */

/* A built-in's name; or a file's path, which has a slash in it or ends in ".toml". */
int sp_policy_load(struct sp_policy_loader *loader, const char *name,
                   struct sp_model *ret_model, struct sp_error *reterr) SP_MUST_CHECK;

/* Text in TOML. `source`: its file in messages and for what it extends; may be "". */
int sp_policy_load_text(struct sp_policy_loader *loader, const char *text, size_t size,
                        const char *name, const char *source,
                        struct sp_model *ret_model, struct sp_error *reterr)
    SP_MUST_CHECK;

int sp_policy_load_document(struct sp_policy_loader *loader,
                            const struct sp_document *document, const char *name,
                            const char *source, struct sp_model *ret_model,
                            struct sp_error *reterr) SP_MUST_CHECK;

/* The lines that problems are in, where they are not there yet: of warnings that were added later. */
void sp_policy_find_excerpts(struct sp_problems *problems);

#endif
