#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "read/reader.h"
#include "trace/verify.h"
#include "trace/writer.h"

struct sp_trace_writer *fuzz_trace_begin(uint64_t size_max_bytes, int *ret_fd)
{
    const struct sp_trace_options options = {.size_max_bytes = size_max_bytes};
    struct sp_trace_writer *w;
    const int fd = memfd_create("trace", MFD_CLOEXEC);
    DEMAND(fd >= 0);
    *ret_fd = dup(fd);
    DEMAND(*ret_fd >= 0);
    DEMAND(sp_trace_writer_new(fd, &options, &w, NULL) == 0);
    sp_trace_begin(w, SP_KIND_START, SP_LAYER_SUPERVISOR, 0, 1, 1);
    sp_trace_end(w);
    return w;
}

static uint64_t read_all(int fd)
{
    struct sp_reader *reader;
    struct sp_read_event e;
    struct sp_fault fault;
    uint64_t events = 0;
    int result;
    lseek(fd, 0, SEEK_SET);
    DEMAND(sp_reader_open_fd(dup(fd), &reader, &fault) == 0);
    while ((result = sp_reader_next(reader, &e, &fault)) > 0)
        events++;
    if (result < 0)
        fprintf(stderr, "line %llu: %s\n", (unsigned long long)fault.line,
                fault.message);
    DEMAND(result == 0);
    sp_reader_free(reader);
    return events;
}

void fuzz_trace_finish(struct sp_trace_writer *w, int fd)
{
    struct sp_verify verify;
    sp_trace_begin_end(w, 0, 1);
    const uint64_t lost = sp_trace_lost_count(w);
    DEMAND(sp_trace_finish(w, NULL) == 0);
    const uint64_t numbers = sp_trace_seq(w);
    sp_trace_writer_free(w);
    lseek(fd, 0, SEEK_SET);
    sp_verify_fd(fd, NULL, &verify);
    if (verify.code != SP_VERIFY_SOUND)
        fprintf(stderr, "line %llu: %s\n", (unsigned long long)verify.fault.line,
                verify.fault.message);
    DEMAND(verify.code == SP_VERIFY_SOUND);
    DEMAND(verify.lost == lost);
    DEMAND(verify.events == numbers);
    DEMAND(read_all(fd) <= numbers);
    close(fd);
}
