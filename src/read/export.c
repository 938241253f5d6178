#include "read/export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "read/export_format.h"

#define OUT_ENOUGH (256u << 10) /* bytes that are worth a write */
#define OUT_MAX    (128u << 20) /* the longest line of a trace, every byte of it escaped */

struct sp_export {
    const struct sp_export_ops *ops;
    void *state; /* owned, by ops->free */
    struct sp_export_context context;
    char *name; /* owned */
};

static const struct sp_export_ops *const formats[SP_EXPORT_FORMATS] = {
    [SP_EXPORT_JSONL] = &sp_export_jsonl,
    [SP_EXPORT_CHROME] = &sp_export_chrome,
    [SP_EXPORT_SPEEDSCOPE] = &sp_export_speedscope,
    [SP_EXPORT_COLLAPSED] = &sp_export_collapsed,
    [SP_EXPORT_OTLP] = &sp_export_otlp,
    [SP_EXPORT_OCSF] = &sp_export_ocsf,
};

int sp_export_no_memory(struct sp_export_context *c)
{
    return sp_fault_set(&c->fault, 0, 0, "no memory");
}

int sp_export_flush(struct sp_export_context *c)
{
    if (c->out.failed || c->text.failed)
        return sp_export_no_memory(c);
    size_t done = 0;
    while (done < c->out.size) {
        const ssize_t n = write(c->fd, c->out.data + done, c->out.size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            c->write_errno = n < 0 ? errno : EIO;
            return sp_fault_set(&c->fault, 0, 0, "%s", strerror(c->write_errno));
        }
        done += (size_t)n;
    }
    sp_buffer_clear(&c->out);
    return 0;
}

int sp_export_settle(struct sp_export_context *c)
{
    return c->out.size >= OUT_ENOUGH || c->out.failed || c->text.failed
               ? sp_export_flush(c)
               : 0;
}

int sp_export_open(enum sp_export_format format, int fd, const char *name,
                   const struct sp_functions *functions, struct sp_export **ret_export,
                   struct sp_fault *ret_fault)
{
    struct sp_export *x = calloc(1, sizeof *x);
    if (x == NULL)
        return sp_fault_set(ret_fault, 0, 0, "no memory");
    x->ops = formats[format];
    x->name = strdup(name);
    x->context =
        (struct sp_export_context){.fd = fd, .functions = functions, .name = x->name};
    sp_buffer_init(&x->context.out, OUT_MAX);
    sp_buffer_init(&x->context.text, OUT_MAX);
    x->state = x->name == NULL ? NULL : x->ops->begin(&x->context);
    if (x->state == NULL) {
        sp_export_free(x);
        return sp_fault_set(ret_fault, 0, 0, "no memory");
    }
    *ret_export = x;
    return 0;
}

void sp_export_free(struct sp_export *x)
{
    if (x == NULL)
        return;
    if (x->state != NULL)
        x->ops->free(x->state);
    sp_buffer_release(&x->context.out);
    sp_buffer_release(&x->context.text);
    free(x->name);
    free(x);
}

static int told(struct sp_export *x, int result, struct sp_fault *ret_fault)
{
    if (result < 0)
        *ret_fault = x->context.fault;
    return result;
}

int sp_export_add(struct sp_export *x, const struct sp_read_event *event,
                  struct sp_fault *ret_fault)
{
    int result = x->ops->add(x->state, event);
    if (result == 0)
        result = sp_export_settle(&x->context);
    return told(x, result, ret_fault);
}

int sp_export_finish(struct sp_export *x, struct sp_fault *ret_fault)
{
    int result = x->ops->finish == NULL ? 0 : x->ops->finish(x->state);
    if (result == 0)
        result = sp_export_flush(&x->context);
    return told(x, result, ret_fault);
}

int sp_export_write_errno(const struct sp_export *x)
{
    return x->context.write_errno;
}

const struct sp_export_losses *sp_export_losses_of(const struct sp_export *x)
{
    return &x->context.losses;
}
