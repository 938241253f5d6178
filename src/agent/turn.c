#include "agent/turn.h"

#if PY_VERSION_HEX >= 0x030c0000
#include <pthread.h>

bool sp_turn_needed;
static pthread_mutex_t turn = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void sp_turn_take_slowly(void)
{
    pthread_mutex_lock(&turn);
}

void sp_turn_leave_slowly(void)
{
    pthread_mutex_unlock(&turn);
}

/* The thread that held it may not exist in the child. */
static void renew(void)
{
    turn = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

void sp_turn_expect_others(void)
{
    if (sp_turn_needed)
        return;
    pthread_atfork(NULL, NULL, renew);
    __atomic_store_n(&sp_turn_needed, true, __ATOMIC_SEQ_CST);
}

#else

void sp_turn_expect_others(void)
{
}

#endif
