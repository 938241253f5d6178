/* What is wrong with a policy, or odd about it: all of it, each with its place.
 */
#ifndef SP_POLICY_PROBLEM_H
#define SP_POLICY_PROBLEM_H

#include <stdbool.h>

#define SP_PROBLEMS_MAX 64u

struct sp_problem {
    char source[256]; /* the file's name; "": none */
    unsigned line;    /* 0: not known */
    unsigned column;
    bool warning;
    char message[320];
    char excerpt[160]; /* the line itself, "": not to be had */
};

/* In the order of each file. */
struct sp_problems {
    unsigned count;  /* may be more than are kept */
    unsigned errors; /* of them, those that are no warnings */
    struct sp_problem items[SP_PROBLEMS_MAX];
};

void sp_problem_add(struct sp_problems *problems, const char *source, unsigned line,
                    unsigned column, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void sp_problem_warn(struct sp_problems *problems, const char *source, unsigned line,
                     unsigned column, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* How many there are to look at. */
unsigned sp_problems_kept(const struct sp_problems *problems);

/* Sorts by line those from the one with that index on, which are of one file. */
void sp_problems_sort(struct sp_problems *problems, unsigned from);

#endif
