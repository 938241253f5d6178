/* sandpit-resolver: looks names up for the supervisor.
 *
 * It is started by the supervisor, before the guest and in the supervisor's domain, with a
 * socket as its standard input, and ends with it. Each question is answered in a process of
 * its own: a lookup can take long, and what libc loads for it can crash.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring/names.h"

#define LOOKUPS_MAX    16 /* at a time */
#define PATIENCE_S     60u
#define QUESTION_FLAGS (AI_ADDRCONFIG | AI_V4MAPPED | AI_ALL | AI_CANONNAME)

static void add(struct sp_name_answer *answer, const struct addrinfo *found)
{
    if (answer->count == SP_NAME_ADDRESSES_MAX)
        return;
    struct sp_name_address *to = &answer->addresses[answer->count];
    to->family = (uint16_t)found->ai_family;
    if (found->ai_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)found->ai_addr;
        memcpy(to->bytes, &in->sin_addr, 4);
    } else if (found->ai_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)found->ai_addr;
        memcpy(to->bytes, &in6->sin6_addr, 16);
        to->scope = in6->sin6_scope_id;
    } else {
        return;
    }
    answer->count++;
}

static void look_up(const struct sp_resolver_question *q,
                    struct sp_resolver_answer *answer)
{
    struct addrinfo hints = {.ai_family = q->names.family,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = q->names.flags & QUESTION_FLAGS};
    struct addrinfo *found = NULL;
    int code = getaddrinfo(q->names.host, NULL, &hints, &found);
    answer->serial = q->serial;
    answer->names.code = code == EAI_SYSTEM ? EAI_AGAIN : code;
    if (code != 0)
        return;
    if (found->ai_canonname != NULL)
        strncpy(answer->names.canonical, found->ai_canonname, SP_NAME_BYTES - 1);
    for (const struct addrinfo *one = found; one != NULL; one = one->ai_next)
        add(&answer->names, one);
    freeaddrinfo(found);
}

static void answer_apart(const struct sp_resolver_question *q)
{
    static struct sp_resolver_answer answer;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        alarm(PATIENCE_S);
        look_up(q, &answer);
    }
    if (child < 0) {
        answer = (struct sp_resolver_answer){.serial = q->serial};
        answer.names.code = EAI_AGAIN;
    }
    if (child <= 0)
        (void)send(STDIN_FILENO, &answer, sizeof answer, MSG_NOSIGNAL);
    if (child == 0)
        _exit(0);
}

int main(void)
{
    static struct sp_resolver_question q;
    int running = 0;
    /* Nobody may look into what the caller's environment says. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return 1;
    for (;;) {
        while (running > 0 &&
               waitpid(-1, NULL, running == LOOKUPS_MAX ? 0 : WNOHANG) > 0)
            running--;
        ssize_t n = recv(STDIN_FILENO, &q, sizeof q, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n != (ssize_t)sizeof q)
            return 0;
        q.names.host[SP_NAME_BYTES - 1] = '\0';
        answer_apart(&q);
        running++;
    }
}
