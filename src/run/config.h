/* What the agents are told: one block, copied into each ring. */
#ifndef SP_RUN_CONFIG_H
#define SP_RUN_CONFIG_H

#include "base/buffer.h"
#include "base/error.h"
#include "plan/interpreter.h"
#include "plan/plan.h"

/* The file in the agents' folder that is preloaded. */
#define SP_STUB_NAME "libsandpit-stub.so"

/* `agents` is their folder, `program` the script's absolute path ("" when there is none). */
int sp_config_build(const struct sp_plan *plan,
                    const struct sp_interpreter *interpreter, const char *agents,
                    const char *program, bool trace, struct sp_buffer *ret_config,
                    struct sp_error *reterr) SP_MUST_CHECK;

#endif
