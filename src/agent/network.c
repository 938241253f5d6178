#include "agent/network.h"
#include "agent/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/acts.h"
#include "agent/agent.h"
#include "agent/code.h"
#include "agent/denial.h"

/* The begin of _socket.socket's objects, the same in every supported version. Its Python
 * attribute would run Python code (an enum's constructor). */
struct socket_object {
    PyObject_HEAD int fd;
    int family;
    int type;
};

static int socket_family(PyObject *object)
{
    if (!object)
        return -1;
    for (PyTypeObject *type = Py_TYPE(object); type; type = type->tp_base)
        if (strcmp(type->tp_name, "_socket.socket") == 0 &&
            type->tp_basicsize >= (Py_ssize_t)sizeof(struct socket_object))
            return ((struct socket_object *)object)->family;
    return -1;
}

static const char *family_name(int family)
{
    switch (family) {
    case AF_INET:
        return "inet";
    case AF_INET6:
        return "inet6";
    case AF_UNIX:
        return "unix";
    case AF_NETLINK:
        return "netlink";
    case AF_PACKET:
        return "packet";
    case AF_VSOCK:
        return "vsock";
    default:
        return "other";
    }
}

static long long_of(PyObject *value)
{
    int overflow = 0;
    if (!value || !PyLong_Check(value))
        return -1;
    long result = PyLong_AsLongAndOverflow(value, &overflow);
    return overflow ? -1 : result;
}

/* Asks where the policy denies the network; otherwise, or if it is allowed, announces. */
static int settle(enum sp_act act, struct sp_lane_record *r, bool reaches_out)
{
    sp_record_stack(r);
    /* Where some of it is granted the kernel's layer judges and says so; without that layer nothing
     * can be granted. */
    enum sp_reach reach =
        sp_agent.policy ? sp_policy_reach(sp_agent.policy) : SP_REACH_OPEN;
    if (reaches_out && (reach == SP_REACH_CLOSED ||
                        (reach == SP_REACH_JUDGED && sp_channel_degraded()))) {
        static char answer[SP_ANSWER_BYTES];
        if (sp_lane_ask(r, answer))
            return sp_denial_permission(EACCES, answer);
    }
    sp_lane_announce(act, r);
    return 0;
}

int sp_network_socket(const char *operation, PyObject *args)
{
    int family = (int)long_of(sp_acts_item(args, 1));
    int type = (int)long_of(sp_acts_item(args, 2));
    if (family < 0) /* wraps a descriptor that exists */
        return 0;
    struct sp_lane_record *r = sp_record_act(SP_KIND_SOCKET, operation);
    sp_record_string(r, SP_FIELD_FAMILY, family_name(family));
    switch (type & 0xf) {
    case SOCK_STREAM:
        sp_record_string(r, SP_FIELD_TYPE, "stream");
        break;
    case SOCK_DGRAM:
        sp_record_string(r, SP_FIELD_TYPE, "dgram");
        break;
    case SOCK_RAW:
        sp_record_string(r, SP_FIELD_TYPE, "raw");
        break;
    default:
        sp_record_string(r, SP_FIELD_TYPE, "other");
        break;
    }
    /* TCP and UDP sockets may be made: what they are used for is what is denied. */
    bool inet = family == AF_INET || family == AF_INET6;
    bool harmless = (inet && (type & 0xf) != SOCK_RAW) || family == AF_UNIX;
    /* Without the supervisor's eye on what they are used for they cannot be made at all. */
    harmless = harmless && !sp_channel_degraded();
    return settle(SP_ACT_SOCKET, r, !harmless);
}

static void add_address(struct sp_lane_record *r, int family, PyObject *address)
{
    if (family == AF_UNIX) {
        sp_acts_add_path(r, SP_FIELD_PATH, address);
        return;
    }
    if (!address || !PyTuple_Check(address))
        return;
    PyObject *host = sp_acts_item(address, 0);
    if (family == AF_INET || family == AF_INET6) {
        sp_acts_add_path(r, SP_FIELD_HOST, host);
        sp_acts_add_path(r, SP_FIELD_ADDRESS, host);
        sp_record_int(r, SP_FIELD_PORT, long_of(sp_acts_item(address, 1)));
    }
}

int sp_network_address(const char *operation, PyObject *args)
{
    PyObject *address = sp_acts_item(args, 1);
    int family = socket_family(sp_acts_item(args, 0));
    if (!address || address == Py_None) /* sendmsg on a connected socket */
        return 0;
    struct sp_lane_record *r = sp_record_act(
        strcmp(operation, "bind") == 0 ? SP_KIND_BIND : SP_KIND_CONNECT, operation);
    if (family >= 0)
        sp_record_string(r, SP_FIELD_FAMILY, family_name(family));
    add_address(r, family, address);
    /* Whom a Unix socket reaches is known by identity only, which the supervisor judges when
     * the kernel shows it the act. */
    return settle(SP_ACT_CONNECT, r, family >= 0 && family != AF_UNIX);
}

int sp_network_lookup(const char *operation, PyObject *args)
{
    struct sp_lane_record *r = sp_record_act(SP_KIND_RESOLVE, operation);
    PyObject *host = sp_acts_item(args, 0);
    if (host && PyUnicode_Check(host))
        sp_acts_add_path(r, SP_FIELD_HOST, host);
    sp_record_stack(r);
    sp_lane_announce(SP_ACT_CONNECT, r);
    return 0;
}
