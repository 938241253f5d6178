#include "agent/turn.h"

#if PY_VERSION_HEX >= 0x030c0000
#include <pthread.h>

static pthread_mutex_t turn = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void sp_turn_take(void)
{
    pthread_mutex_lock(&turn);
}

void sp_turn_leave(void)
{
    pthread_mutex_unlock(&turn);
}

/* The thread that held it may not exist in the child. */
static void renew(void)
{
    turn = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

void sp_turn_start(void)
{
    pthread_atfork(NULL, NULL, renew);
}

#endif
