/* Which of the known names somebody may have meant. */
#ifndef SP_BASE_NEAREST_H
#define SP_BASE_NEAREST_H

#define SP_NAME_MAX_COMPARED 40u /* longer words are not misspelt ones */

/* The name among `names` (NULL ends) closest to `text`, NULL when none is close. */
const char *sp_nearest_name(const char *text, const char *const *names);

#endif
