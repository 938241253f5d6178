#include "base/nearest.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* How many letters must be put in, taken out or replaced to make one word of the other. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[SP_NAME_MAX_COMPARED + 1];
    size_t a_size = strlen(a);
    size_t b_size = strlen(b);
    if (a_size > SP_NAME_MAX_COMPARED || b_size > SP_NAME_MAX_COMPARED)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_size; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            size_t above = row[j];
            row[j] =
                smallest(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[b_size];
}

const char *sp_nearest_name(const char *text, const char *const *names)
{
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    for (; *names != NULL; names++) {
        size_t size = strlen(text);
        size_t distance = edit_distance(text, *names);
        if (size >= 3 && strncmp(text, *names, size) == 0)
            distance = 1; /* a beginning is as good as one wrong letter */
        if (distance < best_distance) {
            best_distance = distance;
            best = *names;
        }
    }
    return best_distance <= 1 + strlen(text) / 4 ? best : NULL;
}
