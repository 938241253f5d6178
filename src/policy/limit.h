/* What a run may use, as a closed list. */
#ifndef SP_POLICY_LIMIT_H
#define SP_POLICY_LIMIT_H

enum sp_limit {
    SP_LIMIT_WALL,       /* ns; ends the run */
    SP_LIMIT_CPU,        /* ns of all processes together; ends the run */
    SP_LIMIT_MEMORY,     /* bytes in use by all processes together; ends the run */
    SP_LIMIT_PROCESSES,  /* count, threads included; the call fails */
    SP_LIMIT_OPEN_FILES, /* count, per process; the call fails */
    SP_LIMIT_FILE_SIZE,  /* bytes, of one file; the call fails */
    SP_LIMIT_DISK,   /* bytes of blocks that the run created or grew; ends the run */
    SP_LIMIT_OUTPUT, /* bytes of stdout and stderr together; ends the run */
    SP_LIMIT_TRACE,  /* bytes of the trace; ends nothing */
    SP_LIMIT_COUNT,
};

const char *sp_limit_name(enum sp_limit limit); /* "wall", "open_files" ... */

#endif
