/* Writes a trace of many opens, as the supervisor does; or only hashes and stores the bytes of one. */
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/writer.h"

#define PIECE_BYTES 65536u
#define FLUSH_LINES 64u /* the supervisor comes to rest about as often under load */

#define PATHS 1000u
static char paths[PATHS][96];

static void name_paths(void)
{
    for (unsigned i = 0; i < PATHS; i++)
        snprintf(paths[i], sizeof paths[i],
                 "/srv/project/.venv/lib/python3.13/site-packages/package/part%u/"
                 "module%u.py",
                 i % 40, i);
}

static void write_open(struct sp_trace_writer *w, uint64_t i)
{
    sp_trace_begin(w, SP_KIND_OPEN, SP_LAYER_KERNEL, i * 1000, 4711, 4711);
    sp_trace_string(w, "path", paths[i % PATHS]);
    sp_trace_string(w, "op", "read");
    sp_trace_string(w, "flags", "O_RDONLY|O_CLOEXEC");
    sp_trace_string(w, "file", "/srv/project/main.py");
    sp_trace_uint(w, "line", i % 300);
    sp_trace_string(w, "function", "load_all");
    sp_trace_end(w);
}

static int write_lines(int fd, uint64_t lines)
{
    struct sp_error error = {0};
    struct sp_trace_writer *w;
    if (sp_trace_writer_new(fd, NULL, &w, &error) != 0)
        return 1;
    name_paths();
    sp_trace_begin(w, SP_KIND_START, SP_LAYER_SUPERVISOR, 0, 4711, 4711);
    sp_trace_end(w);
    for (uint64_t i = 0; i < lines; i++) {
        write_open(w, i);
        if (i % FLUSH_LINES == 0)
            sp_trace_flush(w, false);
    }
    sp_trace_begin_end(w, lines * 1000, 4711);
    bool good = sp_trace_finish(w, &error) == 0 && sp_trace_lost_count(w) == 0;
    sp_trace_writer_free(w);
    return good ? 0 : 1;
}

/* What no way of writing them could do without. */
static int write_bare(int fd, const char *from)
{
    static char piece[PIECE_BYTES];
    unsigned char digest[crypto_generichash_BYTES];
    crypto_generichash_state state;
    ssize_t n;
    int in = open(from, O_RDONLY | O_CLOEXEC);
    crypto_generichash_init(&state, NULL, 0, sizeof digest);
    while ((n = read(in, piece, sizeof piece)) > 0) {
        crypto_generichash_update(&state, (unsigned char *)piece, (size_t)n);
        if (write(fd, piece, (size_t)n) != n)
            return 1;
    }
    crypto_generichash_final(&state, digest, sizeof digest);
    return n == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    bool bare = argc == 4 && strcmp(argv[1], "bare") == 0;
    if (!bare && (argc != 4 || strcmp(argv[1], "lines") != 0)) {
        fprintf(stderr, "usage: write-trace lines FILE COUNT\n"
                        "       write-trace bare FROM FILE\n");
        return 2;
    }
    const char *name = argv[bare ? 3 : 2];
    int fd = open(name, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
    if (fd < 0) {
        perror(name);
        return 1;
    }
    return bare ? write_bare(fd, argv[2])
                : write_lines(fd, strtoull(argv[3], NULL, 10));
}
