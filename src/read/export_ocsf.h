/* Which class and activity of OCSF an event is. Internal to src/read. */
#ifndef SP_READ_EXPORT_OCSF_H
#define SP_READ_EXPORT_OCSF_H

#include <stdbool.h>
#include <stdint.h>

#include "read/read_event.h"

enum sp_ocsf_class {
    SP_OCSF_FILE = 1001,
    SP_OCSF_MODULE = 1005,
    SP_OCSF_PROCESS = 1007,
    SP_OCSF_FINDING = 2004,
    SP_OCSF_NETWORK = 4001,
    SP_OCSF_DNS = 4003,
};

struct sp_ocsf_act {
    int class_uid;
    int activity_id;
    const char *activity_name;
    int severity_id;
};

/* False: OCSF has nothing for it. */
bool sp_ocsf_act_of(const struct sp_read_event *event, struct sp_ocsf_act *ret_act);

const char *sp_ocsf_class_name(int class_uid);
const char *sp_ocsf_category_name(int class_uid);
const char *sp_ocsf_severity_name(int severity_id);

/* The type of the file that an event is about: 0 unknown, 1 regular, 2 folder, 7 link. */
int sp_ocsf_file_type(const struct sp_read_event *event);

#endif
