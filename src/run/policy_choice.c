#include "run/policy_choice.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "run/policy_file.h"

static void member(struct sp_buffer *to, const char *key, const char *text)
{
    sp_json_key(to, key);
    sp_json_string(to, text, strlen(text));
}

void sp_policy_choice_write(const struct sp_policy *policy, struct sp_buffer *to)
{
    sp_buffer_text(to, "{");
    member(to, "name", sp_policy_text(policy, policy->name));
    member(to, "digest", sp_policy_text(policy, policy->digest));
    member(to, "mode", sp_policy_observes(policy) ? "observe" : "enforce");
    sp_json_key(to, "grants");
    sp_grants_write(policy, to);
    sp_buffer_text(to, "}");
}

static int choose_base(struct sp_policy_loader *loader,
                       const struct sp_policy_choice *choice,
                       struct sp_model *ret_model, struct sp_error *reterr)
{
    const char *name = choice->name != NULL ? choice->name : "custom";
    const char *source = choice->source != NULL ? choice->source : "";
    if (choice->document != NULL)
        return sp_policy_load_document(loader, choice->document, name, source,
                                       ret_model, reterr);
    if (choice->text != NULL)
        return sp_policy_load_text(loader, choice->text, choice->text_size, name,
                                   source, ret_model, reterr);
    return sp_policy_load(loader,
                          choice->name != NULL ? choice->name : SP_POLICY_DEFAULT,
                          ret_model, reterr);
}

/* A policy that was read before must still be the same, with all that it extends. */
static int check_digest(const struct sp_policy_choice *choice, struct sp_model *model,
                        struct sp_error *reterr)
{
    char digest[SP_DIGEST_TEXT];
    if (choice->digest == NULL)
        return 0;
    sp_model_digest(model, digest);
    if (strcmp(digest, choice->digest) == 0)
        return 0;
    return sp_fail(reterr, SP_E_POLICY,
                   "the policy '%.200s' is not what it was when it was loaded: a file "
                   "that it extends has changed",
                   choice->name != NULL ? choice->name : "custom");
}

static int add_grants(struct sp_model *model, const struct sp_policy_choice *choice,
                      struct sp_error *reterr)
{
    static const struct sp_place_in_text where = {"", 0, 0};
    if (choice->observe)
        sp_model_set(model, SP_SETTING_MODE, SP_MODE_OBSERVE, "--observe", &where);
    return sp_grants_add(model, choice->grants, choice->grants_count, reterr);
}

int sp_policy_choose(const struct sp_policy_choice *choice,
                     struct sp_policy **ret_policy, struct sp_problems *ret_problems,
                     struct sp_error *reterr)
{
    struct sp_policy_loader loader = {.problems = ret_problems};
    struct sp_model model;
    ret_problems->count = ret_problems->errors = 0;
    int code = choose_base(&loader, choice, &model, reterr);
    if (code == 0) {
        code = check_digest(choice, &model, reterr);
        if (code == 0)
            code = add_grants(&model, choice, reterr);
        if (code == 0)
            code = sp_model_finish(&model, ret_policy, reterr);
        sp_model_release(&model);
    }
    sp_policy_loader_release(&loader);
    return code;
}
