#include "agent/import_judge.h"

#include <string.h>

#include "agent/agent.h"
#include "agent/denial.h"
#include "agent/lane.h"

/* Questions that were answered with yes, so that the layers that see one import after the
 * other ask once. A collision forgets, and asks again. */
static uint64_t allowed[256];

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t hash_import(const struct sp_import *import)
{
    uint64_t hash =
        hash_bytes(0xcbf29ce484222325u, import->module, import->module_size);
    hash = hash_bytes(hash, import->from, import->from_size);
    return hash * 2 + import->direct;
}

/* What the interpreter needs in order to come up is not the program's. Neither is, for an allow list,
 * what it needs in order to do something else; a rule that names the module is about that too. */
static bool excused(const struct sp_import *import, const struct sp_verdict *v)
{
    bool named = strchr(v->rule, '"') != NULL;
    return (!import->direct && !sp_agent.program) || (import->inner && !named);
}

bool sp_import_judges_libraries(void)
{
    return sp_agent.policy &&
           sp_policy_setting(sp_agent.policy, SP_SETTING_SCOPE) == SP_SCOPE_ALL;
}

static bool policy_denies(const struct sp_import *import)
{
    if (!sp_agent.policy)
        return false;
    char module[sizeof import->module + 1];
    memcpy(module, import->module, import->module_size);
    module[import->module_size] = '\0';
    struct sp_verdict v = sp_policy_import(sp_agent.policy, module, import->direct);
    return v.action == SP_DENY && !excused(import, &v);
}

/* What libraries were refused and went on without, to be refused again without a question. */
#define QUIET_MAX 8
static struct {
    uint64_t hash;
    char sentence[SP_ANSWER_BYTES];
} quiet[QUIET_MAX];
static unsigned quiet_next;

static const char *refused_before(uint64_t hash)
{
    for (unsigned i = 0; i < QUIET_MAX; i++)
        if (quiet[i].hash == hash)
            return quiet[i].sentence;
    return NULL;
}

/* What a library was refused last: when the program's own import fails for it, that import was
 * denied. */
static struct sp_import refused;
static char refused_file[SP_TEXT_MAX];
static size_t refused_file_size;
static uint64_t refusals;

uint64_t sp_import_refusals(void)
{
    return refusals;
}

static void remember_refusal(const struct sp_import *import, const char *file,
                             size_t file_size)
{
    refused = *import;
    refused_file_size = file_size < sizeof refused_file ? file_size : 0;
    memcpy(refused_file, file, refused_file_size);
    refusals++;
}

/* Asks the supervisor. `file`: of an extension module that is to be loaded, size 0: any module. */
static bool ask(const struct sp_import *import, const char *file, size_t file_size,
                char answer[SP_ANSWER_BYTES])
{
    struct sp_lane_record *r = &sp_lane_scratch;
    sp_record_begin(r, SP_KIND_IMPORT);
    sp_record_text(r, SP_FIELD_MODULE, import->module, import->module_size);
    sp_record_text(r, SP_FIELD_FROM, import->from, import->from_size);
    sp_record_int(r, SP_FIELD_DIRECT, import->direct);
    if (import->program)
        sp_record_string(r, SP_FIELD_OP, "program");
    if (file_size > 0)
        sp_record_text(r, SP_FIELD_LIBRARY, file, file_size);
    if (import->at_size > 0) {
        sp_record_text(r, SP_FIELD_AT_FILE, import->at, import->at_size);
        sp_record_int(r, SP_FIELD_AT_LINE, import->at_line);
    }
    sp_record_stack(r);
    return sp_lane_ask(r, answer);
}

/* 0: go on. -1: denied, ImportDenied is set. */
int sp_import_decide(const struct sp_import *import)
{
    static char answer[SP_ANSWER_BYTES];
    if (!policy_denies(import))
        return 0;
    uint64_t hash = hash_import(import);
    if (allowed[hash % 256] == hash)
        return 0;
    bool quietly = !import->direct && !sp_import_judges_libraries();
    const char *sentence = quietly ? refused_before(hash) : NULL;
    if (sentence == NULL) {
        if (!ask(import, "", 0, answer)) {
            allowed[hash % 256] = hash;
            return 0;
        }
        sentence = answer;
    }
    if (quietly) {
        remember_refusal(import, "", 0);
        if (sentence == answer) {
            quiet[quiet_next].hash = hash;
            memcpy(quiet[quiet_next++].sentence, answer, sizeof answer);
            quiet_next %= QUIET_MAX;
        }
    }
    sp_denial_import(import->module, import->module_size, sentence);
    return -1;
}

/* The same of the file that an extension module is in. */
int sp_import_decide_file(const struct sp_import *import, const char *file, size_t size)
{
    static char answer[SP_ANSWER_BYTES];
    static char path[SP_TEXT_MAX + 1];
    const struct sp_policy *policy = sp_agent.policy;
    if (!policy || size > SP_TEXT_MAX ||
        sp_policy_setting(policy, SP_SETTING_NATIVE) == SP_NATIVE_ALLOW)
        return 0;
    memcpy(path, file, size);
    path[size] = '\0';
    enum sp_code_file what =
        sp_code_file_of(path, sp_agent_text(sp_agent.config->python_offset));
    if (sp_policy_native(policy, what, sp_agent.program).action == SP_ALLOW ||
        !ask(import, file, size, answer))
        return 0;
    if (!import->direct && !sp_import_judges_libraries())
        remember_refusal(import, file, size);
    sp_denial_import(import->module, import->module_size, answer);
    return -1;
}

/* An import of the program's own has failed, and a library was refused native code meanwhile: the
 * library could not do without. */
void sp_import_charge(uint64_t before)
{
    static char answer[SP_ANSWER_BYTES];
    PyObject *type, *value, *trace;
    if (refusals == before || !PyErr_ExceptionMatches(PyExc_ImportError))
        return;
    PyErr_Fetch(&type, &value, &trace);
    struct sp_import import;
    sp_import_describe(&import, refused.module, refused.module_size);
    import.direct = true;
    (void)ask(&import, refused_file, refused_file_size, answer);
    refusals = before;
    PyErr_Restore(type, value, trace);
}
