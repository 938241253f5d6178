#include "trace/packing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* With this window, level 3 takes under 1 MiB in the supervisor, and larger ones gain nothing on frames
 * of 64 KiB. */
#define LEVEL      3
#define WINDOW_LOG 17
#define PIECE      (32u << 10)

struct sp_packer {
    ZSTD_CCtx *context;
    char piece[PIECE];
};

struct sp_packer *sp_packer_new(void)
{
    struct sp_packer *p = malloc(sizeof *p);
    if (p == NULL)
        return NULL;
    p->context = ZSTD_createCCtx();
    if (p->context == NULL ||
        ZSTD_isError(
            ZSTD_CCtx_setParameter(p->context, ZSTD_c_compressionLevel, LEVEL)) ||
        ZSTD_isError(
            ZSTD_CCtx_setParameter(p->context, ZSTD_c_windowLog, WINDOW_LOG)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(p->context, ZSTD_c_checksumFlag, 1))) {
        sp_packer_free(p);
        return NULL;
    }
    return p;
}

void sp_packer_free(struct sp_packer *p)
{
    if (p == NULL)
        return;
    ZSTD_freeCCtx(p->context);
    free(p);
}

bool sp_packer_frame(struct sp_packer *p, const char *text, size_t size,
                     bool (*put)(void *context, const char *data, size_t size),
                     void *context)
{
    ZSTD_inBuffer in = {text, size, 0};
    size_t left;
    ZSTD_CCtx_reset(p->context, ZSTD_reset_session_only);
    if (ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(p->context, size))) {
        errno = ENOMEM;
        return false;
    }
    do {
        ZSTD_outBuffer out = {p->piece, sizeof p->piece, 0};
        left = ZSTD_compressStream2(p->context, &out, &in, ZSTD_e_end);
        if (ZSTD_isError(left)) {
            errno = ENOMEM;
            return false;
        }
        if (out.pos > 0 && !put(context, p->piece, out.pos))
            return false;
    } while (left > 0);
    return true;
}

bool sp_packing_wanted(const char *name)
{
    static const char suffix[] = ".zst";
    const size_t length = strlen(name);
    return length > sizeof suffix - 1 &&
           strcmp(name + length - (sizeof suffix - 1), suffix) == 0;
}
