/* sandpit verify: checks traces. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/screen.h"
#include "cli/trace_commands.h"
#include "trace/key_file.h"
#include "trace/verify.h"

static const char *const code_words[] = {
    [SP_VERIFY_SOUND] = "sound",
    [SP_VERIFY_ALTERED] = "altered",
    [SP_VERIFY_UNREADABLE] = "unreadable",
    [SP_VERIFY_CUT] = "cut",
};

static const char *word(const struct sp_verify *v)
{
    return v->refused ? "not signed as asked for" : code_words[v->code];
}

static void print_json(const char *path, const struct sp_verify *v)
{
    struct sp_buffer b;
    sp_buffer_init(&b, 1u << 20);
    sp_buffer_text(&b, "{\"path\":");
    sp_json_string(&b, path, strlen(path));
    sp_buffer_format(&b,
                     ",\"code\":%d,\"result\":\"%s\",\"line\":%" PRIu64
                     ",\"byte\":%" PRIu64 ",\"message\":",
                     (int)v->code, v->refused ? "unsigned" : code_words[v->code],
                     v->fault.line, v->fault.byte);
    sp_json_string(&b, v->fault.message, strlen(v->fault.message));
    sp_buffer_format(&b,
                     ",\"events\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"blocks\":%" PRIu64
                     ",\"signature\":\"%s\",\"signer\":",
                     v->events, v->lost, v->blocks, sp_signed_word(v->signature));
    if (v->signature == SP_SIGNED_NOT) {
        sp_buffer_text(&b, "null}");
    } else {
        char fingerprint[SP_FINGERPRINT_TEXT + 1];
        sp_key_fingerprint(&v->signer, fingerprint);
        sp_buffer_format(&b, "\"%s\"}", fingerprint);
    }
    printf("%.*s\n", (int)b.size, b.data);
    sp_buffer_release(&b);
}

/* Anybody can make a key and name it in a trace: only a key that one knows says who signed. */
static void print_signature(struct sp_screen *s, const struct sp_verify *v,
                            bool required)
{
    char fingerprint[SP_FINGERPRINT_TEXT + 1];
    sp_key_fingerprint(&v->signer, fingerprint);
    if (v->signature == SP_SIGNED_BY)
        sp_screen_format(s, "; signed by the key %s%s", fingerprint,
                         required ? ", as asked for"
                                  : ", which proves nothing about who has it (--key "
                                    "PUBFILE does)");
    else if (v->signature == SP_SIGNED_UNREACHED)
        sp_screen_format(s, ", nor the signature by the key %s that was to follow",
                         fingerprint);
}

static void print_result(const char *path, const struct sp_verify *v, bool required)
{
    struct sp_screen s;
    sp_screen_init(&s, false, 0);
    sp_screen_text(&s, path, strlen(path));
    if (v->code == SP_VERIFY_SOUND) {
        sp_screen_format(&s, ": sound and complete, %s events",
                         sp_screen_number(v->events));
        if (v->lost > 0)
            sp_screen_format(&s, ", %s more were lost and are accounted for",
                             sp_screen_number(v->lost));
        print_signature(&s, v, required);
    } else {
        sp_screen_format(&s, ": %s: line %" PRIu64 ", byte %" PRIu64 ": %s", word(v),
                         v->fault.line, v->fault.byte, v->fault.message);
        if (v->code == SP_VERIFY_CUT)
            print_signature(&s, v, required);
    }
    sp_screen_end(&s);
    sp_screen_release(&s);
}

static void tell(const struct sp_verify_options *options, const char *path,
                 const struct sp_verify *v)
{
    if (options->json)
        print_json(path, v);
    else if (v->code == SP_VERIFY_UNREADABLE)
        sp_trace_complain(path, &v->fault);
    else if (!options->quiet)
        print_result(path, v, options->key != NULL);
}

/* An altered trace is worse than one that is none, and that than one that was cut. */
static bool is_worse(enum sp_verify_code code, enum sp_verify_code than)
{
    return code != SP_VERIFY_SOUND && (than == SP_VERIFY_SOUND || code < than);
}

int sp_cli_verify(const void *options, int argc, char **argv)
{
    const struct sp_verify_options *chosen = options;
    enum sp_verify_code worst = SP_VERIFY_SOUND;
    if (argc == 0)
        return sp_cli_error(SP_EXIT_BAD_INPUT,
                            "which trace? (see sandpit verify --help)");
    struct sp_public_key key;
    struct sp_error error;
    if (chosen->key != NULL && sp_key_file_public(chosen->key, &key, &error) != 0)
        return sp_cli_error(SP_EXIT_BAD_INPUT, "%s", error.message);
    for (int i = 0; i < argc; i++) {
        struct sp_verify v;
        sp_verify_path(argv[i], chosen->key != NULL ? &key : NULL, &v);
        tell(chosen, argv[i], &v);
        if (is_worse(v.code, worst))
            worst = v.code;
    }
    return (int)worst;
}
