/* A program of the build: the built-in policies, from TOML to C.
 *
 *     policy_compile OUT.c POLICY.toml...
 *
 * Each file may extend one that stands before it. The blocks are what a run that reads the same
 * text would make of it, so that nothing is parsed to use them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "policy/read.h"

#define POLICIES_MAX 32u

static struct sp_policy *made[POLICIES_MAX];
static size_t made_count;

static int find(void *context, const char *name, const char *from,
                const struct sp_policy **ret_policy, struct sp_error *reterr)
{
    (void)context;
    for (size_t i = 0; i < made_count; i++)
        if (strcmp(sp_policy_text(made[i], made[i]->name), name) == 0) {
            *ret_policy = made[i];
            return 0;
        }
    return sp_fail(reterr, SP_E_POLICY,
                   "%s extends '%s', which does not stand before it", from, name);
}

static int read_file(const char *path, struct sp_buffer *to)
{
    FILE *file = fopen(path, "r");
    char *room;
    while (file != NULL && (room = sp_buffer_reserve(to, 4096)) != NULL) {
        size_t n = fread(room, 1, 4096, file);
        sp_buffer_advance(to, n);
        if (n == 0)
            break;
    }
    if (file != NULL)
        fclose(file);
    return file != NULL && !to->failed ? 0 : -1;
}

static int make(const char *path, struct sp_error *reterr)
{
    static const struct sp_policy_finder finder = {find, NULL};
    static struct sp_problems problems;
    struct sp_document document;
    struct sp_model model;
    sp_auto_buffer text;
    char name[64];
    const char *file = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(file, "."), file);
    problems.count = problems.errors = 0;
    sp_buffer_init(&text, 1u << 20);
    sp_document_init(&document);
    if (made_count == POLICIES_MAX || read_file(path, &text) != 0)
        return sp_fail(reterr, SP_E_POLICY, "cannot read it");
    int code = sp_document_parse_toml(&document, text.data, text.size, reterr);
    if (code == 0 &&
        sp_policy_read(&document, name, file, &finder, &model, &problems) != 0) {
        reterr->line = (int)problems.items[0].line;
        code = sp_fail(reterr, SP_E_POLICY, "%s", problems.items[0].message);
    }
    if (code == 0) {
        code = sp_model_finish(&model, &made[made_count], reterr);
        sp_model_release(&model);
    }
    made_count += code == 0;
    sp_document_release(&document);
    return code;
}

static void print_block(FILE *out, size_t index)
{
    const unsigned char *bytes = (const void *)made[index];
    fprintf(out, "static const _Alignas(8) unsigned char block_%zu[] = {", index);
    for (uint32_t i = 0; i < made[index]->size; i++)
        fprintf(out, "%s%u,", i % 24 == 0 ? "\n    " : "", bytes[i]);
    fprintf(out, "\n};\n");
}

static void print_all(FILE *out)
{
    fprintf(out, "/* Made by policy_compile from policies/. */\n"
                 "#include \"policy/policy.h\"\n");
    for (size_t i = 0; i < made_count; i++)
        print_block(out, i);
    fprintf(out, "const struct sp_policy *sp_policy_builtin_at(size_t index)\n{\n"
                 "    static const unsigned char *const all[] = {");
    for (size_t i = 0; i < made_count; i++)
        fprintf(out, "block_%zu, ", i);
    fprintf(
        out,
        "};\n    return index < sizeof all / sizeof *all ? (const void *)all[index] "
        ": NULL;\n}\n");
}

int main(int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        struct sp_error error = {0};
        if (make(argv[i], &error) != 0) {
            fprintf(stderr, "%s:%d: %s\n", argv[i], error.line, error.message);
            return 1;
        }
    }
    FILE *out = argc > 1 ? fopen(argv[1], "w") : NULL;
    if (out == NULL)
        return 1;
    print_all(out);
    for (size_t i = 0; i < made_count; i++)
        free(made[i]);
    return fclose(out) == 0 ? 0 : 1;
}
