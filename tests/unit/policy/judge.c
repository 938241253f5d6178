/* Answers questions about policies, for oracle/judging.py: a program, no test.
 *
 *     policy SIZE\n TEXT        a policy in TOML, for what follows: "policy", or "wrong"
 *     WORD TARGET\n             as `sandpit policy explain` asks: "allow" or "deny"
 *     connect ADDRESS PORT HOST\n, connect NAME\n
 */
#include "policy/make.h"

#include <arpa/inet.h>
#include <ctype.h>

#include "policy/question.h"

static struct sp_policy *policy;

static void take_policy(size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL || fread(text, 1, size, stdin) != size)
        exit(2);
    text[size] = '\0';
    free(policy);
    struct sp_policy *written = make_written(text, size);
    policy = written != NULL ? make_bound(text) : NULL;
    if (policy == NULL)
        printf("wrong %s\n", problems.items[0].message);
    else
        puts("policy");
    free(written);
    free(text);
}

static bool take_address(const char *text, uint8_t to[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    memcpy(to, mapped, sizeof mapped);
    return inet_pton(AF_INET, text, to + 12) == 1 || inet_pton(AF_INET6, text, to) == 1;
}

static void answer(const char *word, char *target)
{
    const char *hosts[2] = {NULL, NULL};
    struct sp_question question = {
        .kind = (enum sp_question_kind)sp_question_find(word), .target = target};
    if (question.kind == SP_ASK_CONNECT && (target[0] == '/' || target[0] == '@')) {
        question.endpoint.unix_name = target;
    } else if (question.kind == SP_ASK_CONNECT) {
        const char *address = strtok(target, " ");
        const char *port = strtok(NULL, " ");
        hosts[0] = strtok(NULL, " ");
        if (port == NULL || !take_address(address, question.endpoint.address))
            exit(2);
        question.endpoint.port = (uint16_t)atoi(port);
        question.endpoint.hosts = hosts;
    }
    struct sp_verdict verdict = sp_question_judge(policy, &question);
    printf("%s %s\n", verdict.action == SP_ALLOW ? "allow" : "deny", verdict.rule);
}

int main(void)
{
    char line[8192];
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *target = strchr(line, ' ');
        if (target == NULL)
            return 2;
        *target++ = '\0';
        if (strcmp(line, "policy") == 0)
            take_policy((size_t)atol(target));
        else if (sp_question_find(line) < 0)
            return 2;
        else if (policy == NULL)
            puts("none");
        else
            answer(line, target);
    }
    free(policy);
    return 0;
}
