/* The sentence that tells of a denial: the same text in the trace, in the result and in the
 * exception that the program gets.
 *
 * An exception that the agent raises itself gets it as an answer. Any other refused call comes
 * back as a bare errno, of which Python makes an exception with the text that libc's strerror()
 * has for it. So the sentence is put into the process's lane before such a call is answered,
 * and the stub's strerror() gives it to the thread that it is for: once, and only as long as
 * nothing else has happened there.
 */
#ifndef SP_SUPERVISE_SENTENCE_H
#define SP_SUPERVISE_SENTENCE_H

#include "supervise/supervisor.h"

struct sp_place;

/* "MESSAGE, FILE:LINE; HINT", without the place where it is not known. Static: valid until the
 * next one is made. */
const char *sp_sentence_make(const struct sp_explanation *explanation,
                             const struct sp_place *place);

/* What the call leaves for its thread, before it is answered: its sentence when it is refused,
 * nothing when it is not. */
void sp_sentence_settle(const struct sp_act_call *call, const struct sp_answer *answer);

#endif
