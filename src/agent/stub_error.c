/* The text of an errno, of which CPython makes the text of an OSError: where the call that gave
 * it was denied, the supervisor's sentence. */
#include "agent/stub_private.h"

#include <string.h>

SP_EXPORT char *strerror(int code)
{
    SP_REAL(strerror);
    char *told = sp_stub.error_told ? sp_stub.error_told(code) : NULL;
    if (told)
        return told;
    return real ? real(code) : (char *)"";
}
