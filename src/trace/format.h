/* What writers and readers of .sptrace files must agree on. docs/trace-format.md describes
 * the format itself.
 */
#ifndef SP_TRACE_FORMAT_H
#define SP_TRACE_FORMAT_H

#define SP_TRACE_VERSION 1

/* A run holds at most so many calls and returns. */
#define SP_TRACE_RUN_MAX 4096u

/* No line is longer, its newline included: a source text of 1 MiB in which every byte had
 * to be escaped fits. A reader refuses what is longer. */
#define SP_TRACE_LINE_MAX (8u << 20)

#endif
