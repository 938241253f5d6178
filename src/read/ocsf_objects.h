/* What events of OCSF have in common. Internal to src/read. */
#ifndef SP_READ_OCSF_OBJECTS_H
#define SP_READ_OCSF_OBJECTS_H

#include <stdint.h>

#include "read/export_format.h"
#include "read/export_ocsf.h"
#include "read/pair_map.h"

#define SP_OCSF_NAME_MAX 256u

/* What a process is called. */
struct sp_ocsf_name {
    uint32_t size;
    char text[SP_OCSF_NAME_MAX];
};

struct sp_ocsf {
    struct sp_export_context *c;  /* borrowed */
    struct sp_pair_map processes; /* names, owned, by process and 0 */
    uint64_t time_ns;             /* of the start, since 1970 */
    char kernel[64];
    uint32_t kernel_size;
};

/* Members of the object begun in `b`. */
void sp_ocsf_put_text(struct sp_buffer *b, const char *key, struct sp_text text);
void sp_ocsf_put_ours(struct sp_buffer *b, const char *key, const char *text);
void sp_ocsf_put_int(struct sp_buffer *b, const char *key, int64_t value);

/* Begins an event: class, activity, how bad it is, when, and in a few words what. */
void sp_ocsf_put_head(struct sp_ocsf *s, const struct sp_read_event *event,
                      const struct sp_ocsf_act *act);

/* A process, its object left open. `tid` 0: none. */
void sp_ocsf_put_process(struct sp_ocsf *s, const char *key, int64_t pid, int64_t tid);
void sp_ocsf_put_actor(struct sp_ocsf *s, int64_t pid, int64_t tid);
void sp_ocsf_put_device(struct sp_ocsf *s);

/* Whether it worked, where the trace says so. */
void sp_ocsf_put_status(struct sp_ocsf *s, const struct sp_read_event *event);

/* What stands nowhere else. */
void sp_ocsf_put_unmapped(struct sp_ocsf *s, const struct sp_read_event *event);

#endif
