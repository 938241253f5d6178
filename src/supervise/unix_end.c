#include "supervise/unix_end.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "sys/guest.h"

/* A stranger's: only where each act is judged, and by what the object is called in truth. */
static int judge(struct sp_act_call *call, const char *name, struct sp_unix_end *end)
{
    struct sp_endpoint endpoint = {.unix_name = name};
    if (call->s->reach != SP_REACH_JUDGED)
        return -EACCES;
    end->verdict = sp_policy_endpoint(call->s->policy, &endpoint);
    end->judged = true;
    return end->verdict.action == SP_ALLOW ? 0 : -EACCES;
}

static int find_abstract(struct sp_act_call *call, int fd, const struct sp_address *a,
                         struct sp_unix_end *end)
{
    int whose = sp_sockets_whose_name(&call->s->sockets, fd, &a->raw.un, a->size);
    size_t size = a->size - offsetof(struct sockaddr_un, sun_path);
    if (whose == SP_WHOSE_NOBODY)
        return -ECONNREFUSED;
    if (whose != SP_WHOSE_STRANGER)
        return whose == SP_WHOSE_OWN ? 0 : whose;
    /* A name with a NUL inside is none that a policy could hold. */
    if (memchr(a->raw.un.sun_path + 1, '\0', size - 1) != NULL)
        return -EACCES;
    return judge(call, a->text, end);
}

static int find_path(struct sp_act_call *call, const struct sp_address *a,
                     struct sp_unix_end *end)
{
    char link[40];
    char node[PATH_MAX];
    sp_auto_fd object = sp_guest_open_path((pid_t)call->n->pid, AT_FDCWD, a->text, 0);
    if (object < 0)
        return object;
    int whose = sp_sockets_whose_path(&call->s->sockets, object);
    if (whose == SP_WHOSE_NOBODY)
        return -ECONNREFUSED;
    if (whose < 0)
        return whose;
    snprintf(link, sizeof link, "/proc/self/fd/%d", object);
    ssize_t n = readlink(link, node, sizeof node - 1);
    node[n > 0 ? n : 0] = '\0';
    int result = whose == SP_WHOSE_OWN ? 0 : judge(call, node, end);
    if (result == 0)
        end->object = sp_steal_fd(&object);
    return result;
}

int sp_unix_end_find(struct sp_act_call *call, int fd, const struct sp_address *address,
                     struct sp_unix_end *ret_end)
{
    *ret_end = (struct sp_unix_end){.object = -1};
    return address->raw.un.sun_path[0] == '\0'
               ? find_abstract(call, fd, address, ret_end)
               : find_path(call, address, ret_end);
}

void sp_unix_end_node(int object, struct sockaddr_un *ret_name)
{
    *ret_name = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(ret_name->sun_path, sizeof ret_name->sun_path, "/proc/self/fd/%d", object);
}
