/* What was used, how, how often and by which lines of the program: files, or addresses. In
 * bounded memory: what finds no room is counted.
 */
#ifndef SP_READ_USES_H
#define SP_READ_USES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/read_event.h"
#include "read/tally.h"

#define SP_USE_WAYS       8u
#define SP_USE_PLACES_MAX 8u

/* What the program asked for. Whether the kernel then did it is known where sandpit did it for
 * the program. */
enum sp_file_way {
    SP_FILE_READ,
    SP_FILE_WRITTEN, /* opened for writing: it may have been there before or not */
    SP_FILE_CREATED, /* made where nothing was: folders, links, what was renamed to it */
    SP_FILE_REMOVED, /* removed, or renamed to another */
    SP_FILE_CHANGED, /* its attributes */
    SP_FILE_FAILED,  /* the kernel said no, as to a file that is not there */
    SP_FILE_DENIED,
};

enum sp_network_way {
    SP_NETWORK_RESOLVED,
    SP_NETWORK_CONNECTED,
    SP_NETWORK_SENT, /* without a connection */
    SP_NETWORK_BOUND,
    SP_NETWORK_LISTENED,
    SP_NETWORK_FAILED,
    SP_NETWORK_DENIED,
};

/* One file or address. */
struct sp_use {
    uint64_t counts[SP_USE_WAYS];
    uint64_t elsewhere; /* uses by lines that found no room in `places` */
    uint32_t places_count;
    uint32_t host; /* network: index + 1 of the name it was looked up by; 0: none */
    struct {
        uint32_t place; /* index in sp_uses.places */
        uint32_t count;
    } places[SP_USE_PLACES_MAX];
};

struct sp_uses {
    struct sp_tally
        names; /* paths, hosts, addresses with port: items[i] is of uses[i] */
    struct sp_tally places; /* "file:line" */
    struct sp_tally hosts;  /* network: names that were looked up ... */
    struct sp_tally looked; /* ... and the addresses that were the answers */
    uint32_t *host_of;      /* owned: by index in `looked`, that in `hosts` */
    uint32_t host_of_count;
    struct sp_use *uses; /* owned */
    uint32_t capacity;
};

void sp_uses_init(struct sp_uses *u);
void sp_uses_release(struct sp_uses *u);

/* One more use of a name, by the line that the event gives. NULL: no room. */
struct sp_use *sp_uses_add(struct sp_uses *u, const char *name, size_t size,
                           unsigned way, const struct sp_read_event *event);

/* Take in an event, when it is about a file, or about the network. */
void sp_files_add(struct sp_uses *u, const struct sp_read_event *event);
void sp_network_add(struct sp_uses *u, const struct sp_read_event *event);

/* The names of the ways, NULL-terminated. */
extern const char *const sp_file_ways[];
extern const char *const sp_network_ways[];

/* Whether an open could change the file. */
bool sp_open_changes(const struct sp_tape *tape);

#endif
