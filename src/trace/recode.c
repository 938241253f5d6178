#include "trace/recode.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/scope.h"
#include "trace/content.h"
#include "trace/sink.h"

bool sp_recode_is_packed(int from)
{
    struct sp_content content;
    char first;
    sp_content_init(&content, from);
    (void)sp_content_read_at(&content, &first, 1, 0);
    const bool packed = content.unpacker != NULL;
    sp_content_release(&content);
    return packed;
}

static int copy(struct sp_content *content, struct sp_sink *sink)
{
    sp_auto_free char *piece = malloc(SP_SINK_BUFFER);
    uint64_t offset = 0;
    if (piece == NULL) {
        errno = ENOMEM;
        return -1;
    }
    for (;;) {
        const ssize_t n = sp_content_read_at(content, piece, SP_SINK_BUFFER, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        if (!sp_sink_append(sink, piece, (size_t)n)) {
            errno = sink->err;
            return -1;
        }
        offset += (uint64_t)n;
    }
    if (sp_sink_finish(sink))
        return 0;
    errno = sink->err;
    return -1;
}

int sp_recode(int from, int to, bool packed)
{
    struct sp_content content;
    struct sp_sink sink;
    const int fd = fcntl(to, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return -1;
    if (sp_sink_init(&sink, fd, packed) < 0) {
        close(fd);
        errno = ENOMEM;
        return -1;
    }
    sp_content_init(&content, from);
    const int result = copy(&content, &sink);
    const int err = errno;
    sp_content_release(&content);
    sp_sink_release(&sink);
    errno = err;
    return result;
}
