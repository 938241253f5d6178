/* Judging, telling and denying network calls. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "supervise/network.h"
#include "sys/guest.h"

#define DNS_PORT 53

bool sp_network_read_address(struct sp_act_call *call, uint64_t from, uint64_t size,
                             struct sp_address *ret_address)
{
    int length = (int)(uint32_t)size;
    if (length < (int)sizeof(sa_family_t) || length > (int)sizeof ret_address->raw)
        return false;
    if (sp_guest_read((pid_t)call->n->pid, from, &ret_address->raw, (size_t)length) !=
            0 ||
        !sp_notify_valid(call))
        return false;
    return sp_address_take(ret_address, length);
}

/* A size that makes no sense is the kernel's to refuse. */
struct sp_answer sp_network_unreadable(struct sp_act_call *call, uint64_t size)
{
    int length = (int)(uint32_t)size;
    bool sound = length >= (int)sizeof(sa_family_t) &&
                 length <= (int)sizeof(struct sockaddr_storage);
    if (call->s->reach == SP_REACH_OPEN)
        return sound ? sp_act_unreadable(call, EFAULT) : SP_CONTINUE;
    return sound || call->s->reach == SP_REACH_CLOSED ? sp_act_unreadable(call, EFAULT)
                                                      : SP_REFUSE(EINVAL);
}

struct sp_verdict sp_network_judge(struct sp_act_call *call,
                                   const struct sp_address *address)
{
    struct sp_endpoint end = {.port = (uint16_t)address->port};
    if (sp_address_is_inet(address)) {
        sp_address_bytes(address, end.address);
        end.hosts = sp_hosts_of(&call->s->hosts, end.address);
    } else {
        end.unix_name = address->text;
    }
    return sp_policy_endpoint(call->s->policy, &end);
}

/* What libc tries within a lookup: its services' sockets, name servers, a netlink socket to ask
 * for addresses, datagram sockets connected to sort its answers. That a lookup is going on is
 * the guest's claim, and must hide nothing else. */
static bool may_be_of_lookup(struct sp_act_call *call, const char *operation,
                             const struct sp_address *a)
{
    if (a == NULL)
        return false;
    if (a->family == AF_UNIX)
        return strstr(a->text, "/nscd/") != NULL ||
               strstr(a->text, "/systemd/") != NULL || strstr(a->text, "/nss/") != NULL;
    if (strcmp(operation, "socket") == 0)
        return a->family == AF_NETLINK;
    bool connects = strcmp(operation, "connect") == 0;
    if (a->host[0] == '\0' || !(connects || strcmp(operation, "send") == 0))
        return false;
    return a->port == DNS_PORT ||
           (connects && sp_sockets_is_datagram(&call->s->sockets, (pid_t)call->n->pid,
                                               sp_act_int(call, 0)));
}

/* Inside a name lookup, what libc's own services try belongs to the lookup. Anything else that
 * is tried meanwhile is not libc's. */
static bool in_lookup(struct sp_act_call *call, const char *operation,
                      const struct sp_address *a)
{
    static struct sp_claim claim;
    return call->process->lane != NULL &&
           sp_lane_act(call->process->lane, (pid_t)call->n->pid, SP_ACT_LOOKUP,
                       &claim) &&
           may_be_of_lookup(call, operation, a);
}

static bool belongs_to_lookup(struct sp_act_call *call, const char *operation,
                              const struct sp_address *a,
                              const struct sp_verdict *verdict)
{
    if (!in_lookup(call, operation, a))
        return false;
    struct sp_lookup *lookup =
        sp_lookups_note(&call->s->lookups, call->process->pid, (pid_t)call->n->pid);
    if (lookup == NULL)
        return false;
    if (!lookup->judged && verdict != NULL) {
        lookup->judged = true;
        lookup->verdict = *verdict;
    }
    if (!lookup->tried && a->host[0] != '\0') {
        lookup->tried = true;
        lookup->port = a->port;
        snprintf(lookup->address, sizeof lookup->address, "%s", a->host);
    }
    return true;
}

static void find_place(struct sp_act_call *call, enum sp_act act,
                       const struct sp_address *a, struct sp_place *ret_place)
{
    sp_place_find(call, act, a != NULL && a->host[0] != '\0' ? a->host : NULL,
                  ret_place, NULL);
}

struct sp_answer sp_network_deny(struct sp_act_call *call, enum sp_act act,
                                 const char *operation, const char *target,
                                 const struct sp_address *a,
                                 const struct sp_verdict *verdict, int err)
{
    struct sp_place place;
    struct sp_buffer members;
    if (belongs_to_lookup(call, operation, a, verdict))
        return SP_REFUSE(err);
    sp_buffer_init(&members, 64u << 10);
    if (a != NULL)
        sp_address_members(a, &members);
    find_place(call, act, a, &place);
    struct sp_denial denial = {.category = "network",
                               .operation = operation,
                               .target = target,
                               .layer = SP_LAYER_KERNEL,
                               .members = &members};
    denial.verdict = verdict != NULL ? *verdict : sp_policy_network(call->s->policy);
    bool structural = verdict == NULL && call->s->reach == SP_REACH_OPEN;
    if (structural || denial.verdict.action == SP_ALLOW) /* whatever is granted */
        denial.verdict = sp_verdict_always(call->s->policy);
    sp_record_denial(call, &denial, &place);
    sp_place_release(&place);
    sp_buffer_release(&members);
    return SP_REFUSE(err);
}

/* Asking a server is what a lookup would not be let do; the rest of it is sorting what it found. */
static void note_lookup(struct sp_act_call *call, const struct sp_address *a)
{
    if (a->port == DNS_PORT)
        (void)belongs_to_lookup(call, "connect", a, NULL);
}

bool sp_network_observe(struct sp_act_call *call, enum sp_act act,
                        const char *operation, const struct sp_address *a)
{
    if (!call->observing || !sp_address_is_inet(a))
        return false;
    if (in_lookup(call, operation, a)) {
        note_lookup(call, a);
        return false;
    }
    struct sp_verdict verdict = sp_network_judge(call, a);
    if (verdict.action == SP_ALLOW)
        return false;
    (void)sp_network_deny(call, act, operation, a->text, a, &verdict, EACCES);
    return true;
}

bool sp_network_observe_socket(struct sp_act_call *call, const char *target,
                               const struct sp_address *a)
{
    if (!call->observing || in_lookup(call, "socket", a))
        return false;
    struct sp_verdict verdict = sp_policy_network(call->s->policy);
    if (verdict.action == SP_ALLOW)
        return false;
    (void)sp_network_deny(call, SP_ACT_SOCKET, "socket", target, a, &verdict, EACCES);
    return true;
}

static void write_act(struct sp_act_call *call, enum sp_kind kind, enum sp_act act,
                      const char *op, const struct sp_address *a, const char *args,
                      int err)
{
    struct sp_place place;
    struct sp_buffer members;
    sp_buffer_init(&members, 64u << 10);
    find_place(call, act, a, &place);
    sp_member_text(&members, "op", op);
    if (a != NULL)
        sp_address_members(a, &members);
    if (args != NULL)
        sp_member_text(&members, "args", args);
    if (err != 0)
        sp_member_int(&members, "errno", err);
    sp_place_members(&place, &members);
    sp_record_begin(call, kind);
    sp_trace_members(call->s->writer, members.data, members.size);
    sp_trace_end(call->s->writer);
    sp_place_release(&place);
    sp_buffer_release(&members);
}

void sp_network_record(struct sp_act_call *call, enum sp_kind kind, enum sp_act act,
                       const char *op, const struct sp_address *a, const char *args)
{
    write_act(call, kind, act, op, a, args, 0);
}

void sp_network_record_done(struct sp_act_call *call, enum sp_kind kind,
                            enum sp_act act, const char *op, const struct sp_address *a,
                            const struct sp_answer *answer)
{
    bool failed = answer->kind == SP_ANSWER_REFUSE && answer->value != EINPROGRESS;
    write_act(call, kind, act, op, a, NULL, failed ? (int)answer->value : 0);
}
