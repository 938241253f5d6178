/* Skipping by requirement: a test that needs an ability this machine lacks is skipped, and is
 * a failure when SANDPIT_REQUIRE (names, separated by commas) lists it.
 *
 *     sp_test_requires("landlock", abi > 0);
 */
#ifndef SP_TESTS_UNIT_REQUIRES_H
#define SP_TESTS_UNIT_REQUIRES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static inline bool sp_test_demanded(const char *ability)
{
    const char *list = getenv("SANDPIT_REQUIRE");
    size_t size = strlen(ability);
    while (list != NULL && *list != '\0') {
        size_t item = strcspn(list, ",");
        if (item == size && memcmp(list, ability, size) == 0)
            return true;
        list += item + (list[item] == ',');
    }
    return false;
}

static inline void sp_test_requires(const char *ability, bool present)
{
    if (present)
        return;
    print_message("# requires: %s\n", ability);
    if (sp_test_demanded(ability))
        fail();
    skip();
}

#endif
