/* Name and user lookups. What libc does inside one (sockets, files of the name service) is
 * one act to the supervisor; the marks tell it where it begins and ends. When it says that
 * the lookup was denied, gai_strerror() says so in its words, which are those of the
 * exception that Python raises. */
#include "agent/stub_private.h"

#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>

#define MESSAGE_BYTES SP_SENTENCE_BYTES

/* Of this thread's last denied lookup. On the heap, made when first needed: every thread of
 * every program pays for what is thread-local here. */
static __thread char *message;
static __thread int message_code;

static int begin(const char *function, const char *name)
{
    return sp_stub.lookup_begun ? sp_stub.lookup_begun(function, name) : -1;
}

static void keep_message(const char *text, int code)
{
    int err = errno;
    if (!message)
        message = malloc(MESSAGE_BYTES);
    if (message) {
        memcpy(message, text, MESSAGE_BYTES);
        message_code = code;
    }
    errno = err;
}

/* Whether it was denied. `code`: the EAI_ number that will be turned into text, or 0. */
static int end(int mark, int answered, int code)
{
    if (!sp_stub.lookup_ended || mark < 0)
        return 0;
    char text[MESSAGE_BYTES];
    int denied = sp_stub.lookup_ended(mark, answered, text, sizeof text);
    message_code = 0;
    if (denied && code != 0)
        keep_message(text, code);
    return denied;
}

/* The supervisor has said what there is to say about this name. */
static int settle(int mark, enum sp_name_result asked,
                  const struct sp_name_answer *answer)
{
    end(mark, 1, 0);
    if (asked == SP_NAME_DENIED)
        keep_message(answer->message, answer->code);
    return answer->code;
}

SP_EXPORT int getaddrinfo(const char *restrict node, const char *restrict service,
                          const struct addrinfo *restrict hints,
                          struct addrinfo **restrict result)
{
    SP_REAL(getaddrinfo);
    struct sp_name_answer answer;
    enum sp_name_result asked = SP_NAME_LOCAL;
    int flags = hints ? hints->ai_flags : 0;
    if (!real)
        return EAI_SYSTEM;
    int mark = begin("getaddrinfo", node);
    if (node && !(flags & AI_NUMERICHOST))
        asked =
            sp_names_ask(node, hints ? hints->ai_family : AF_UNSPEC, flags, &answer);
    if (asked != SP_NAME_LOCAL) {
        int refused = settle(mark, asked, &answer);
        return refused ? refused
                       : sp_names_list(&answer, real, node, service, hints, result);
    }
    int code = real(node, service, hints, result);
    end(mark, code == 0, code);
    return code;
}

SP_EXPORT int getnameinfo(const struct sockaddr *restrict address, socklen_t size,
                          char *restrict host, socklen_t host_size,
                          char *restrict service, socklen_t service_size, int flags)
{
    SP_REAL(getnameinfo);
    if (!real)
        return EAI_SYSTEM;
    int mark = begin("getnameinfo", NULL);
    int code = real(address, size, host, host_size, service, service_size, flags);
    end(mark, code == 0, code);
    return code;
}

SP_EXPORT const char *gai_strerror(int code)
{
    SP_REAL(gai_strerror);
    if (message && message_code != 0 && message_code == code)
        return message;
    return real ? real(code) : "";
}

/* Where the name is granted: the answer in the caller's buffer. False: libc's to look up. */
static int entry_asked(int mark, const char *name, int family, struct hostent *entry,
                       char *buffer, size_t size, struct hostent **result, int *error,
                       int *ret_code)
{
    struct sp_name_answer answer;
    enum sp_name_result asked = sp_names_ask(name, family, 0, &answer);
    if (asked == SP_NAME_LOCAL)
        return 0;
    settle(mark, asked, &answer);
    *ret_code =
        sp_names_entry(&answer, name, family, entry, buffer, size, result, error);
    return 1;
}

/* As in libc, one place for all callers. */
static int entry_asked_alone(int mark, const char *name, int family,
                             struct hostent **result)
{
    static struct hostent entry;
    static char buffer[4096];
    int error;
    int code;
    if (!entry_asked(mark, name, family, &entry, buffer, sizeof buffer, result, &error,
                     &code))
        return 0;
    if (!*result)
        h_errno = error;
    return 1;
}

SP_EXPORT struct hostent *gethostbyname(const char *name)
{
    SP_REAL(gethostbyname);
    struct hostent *found = NULL;
    int mark = begin("gethostbyname", name);
    if (entry_asked_alone(mark, name, AF_INET, &found))
        return found;
    found = real ? real(name) : NULL;
    end(mark, found != NULL, 0);
    return found;
}

SP_EXPORT struct hostent *gethostbyname2(const char *name, int family)
{
    SP_REAL(gethostbyname2);
    struct hostent *found = NULL;
    int mark = begin("gethostbyname2", name);
    if (entry_asked_alone(mark, name, family, &found))
        return found;
    found = real ? real(name, family) : NULL;
    end(mark, found != NULL, 0);
    return found;
}

SP_EXPORT int gethostbyname_r(const char *restrict name, struct hostent *restrict entry,
                              char *restrict buffer, size_t size,
                              struct hostent **restrict result, int *restrict error)
{
    SP_REAL(gethostbyname_r);
    int code;
    if (!real)
        return ENOSYS;
    int mark = begin("gethostbyname_r", name);
    if (entry_asked(mark, name, AF_INET, entry, buffer, size, result, error, &code))
        return code;
    code = real(name, entry, buffer, size, result, error);
    end(mark, code == 0 && *result, 0);
    return code;
}

SP_EXPORT int gethostbyname2_r(const char *restrict name, int family,
                               struct hostent *restrict entry, char *restrict buffer,
                               size_t size, struct hostent **restrict result,
                               int *restrict error)
{
    SP_REAL(gethostbyname2_r);
    int code;
    if (!real)
        return ENOSYS;
    int mark = begin("gethostbyname2_r", name);
    if (entry_asked(mark, name, family, entry, buffer, size, result, error, &code))
        return code;
    code = real(name, family, entry, buffer, size, result, error);
    end(mark, code == 0 && *result, 0);
    return code;
}

SP_EXPORT struct hostent *gethostbyaddr(const void *address, socklen_t size, int family)
{
    SP_REAL(gethostbyaddr);
    int mark = begin("gethostbyaddr", NULL);
    struct hostent *found = real ? real(address, size, family) : NULL;
    end(mark, found != NULL, 0);
    return found;
}

SP_EXPORT int gethostbyaddr_r(const void *restrict address, socklen_t address_size,
                              int family, struct hostent *restrict entry,
                              char *restrict buffer, size_t size,
                              struct hostent **restrict result, int *restrict error)
{
    SP_REAL(gethostbyaddr_r);
    if (!real)
        return ENOSYS;
    int mark = begin("gethostbyaddr_r", NULL);
    int code = real(address, address_size, family, entry, buffer, size, result, error);
    end(mark, code == 0 && *result, 0);
    return code;
}

/* Users and groups: the name service may ask a daemon by a socket. All four functions, and
 * their reentrant twins, have one shape each. */
#define LOOKUP(type, function, parameter, name)                                        \
    SP_EXPORT struct type *function(parameter key)                                     \
    {                                                                                  \
        SP_REAL(function);                                                             \
        int mark = begin(#function, name);                                             \
        struct type *found = real ? real(key) : NULL;                                  \
        end(mark, found != NULL, 0);                                                   \
        return found;                                                                  \
    }
#define LOOKUP_R(type, function, parameter, name)                                      \
    SP_EXPORT int function(parameter key, struct type *restrict entry,                 \
                           char *restrict buffer, size_t size,                         \
                           struct type **restrict result)                              \
    {                                                                                  \
        SP_REAL(function);                                                             \
        if (!real)                                                                     \
            return ENOSYS;                                                             \
        int mark = begin(#function, name);                                             \
        int code = real(key, entry, buffer, size, result);                             \
        end(mark, code == 0 && *result, 0);                                            \
        return code;                                                                   \
    }

LOOKUP(passwd, getpwnam, const char *, key)
LOOKUP(passwd, getpwuid, uid_t, NULL)
LOOKUP(group, getgrnam, const char *, key)
LOOKUP(group, getgrgid, gid_t, NULL)
LOOKUP_R(passwd, getpwnam_r, const char *restrict, key)
LOOKUP_R(passwd, getpwuid_r, uid_t, NULL)
LOOKUP_R(group, getgrnam_r, const char *restrict, key)
LOOKUP_R(group, getgrgid_r, gid_t, NULL)

SP_EXPORT int getgrouplist(const char *user, gid_t group, gid_t *groups, int *count)
{
    SP_REAL(getgrouplist);
    int mark = begin("getgrouplist", user);
    int code = real ? real(user, group, groups, count) : -1;
    end(mark, code >= 0, 0);
    return code;
}

SP_EXPORT int initgroups(const char *user, gid_t group)
{
    SP_REAL(initgroups);
    int mark = begin("initgroups", user);
    int code = real ? real(user, group) : -1;
    end(mark, code == 0, 0);
    return code;
}
