/* From an instruction to its line, by the tables that code objects carry: three formats. Pure;
 * a table may be malformed or cut, the result is then 0 or a wrong line, nothing worse.
 */
#ifndef SP_SUPERVISE_LINES_H
#define SP_SUPERVISE_LINES_H

#include <stddef.h>
#include <stdint.h>

#define SP_LINES_BYTES_MAX (64u << 10)

/* Each: the table's bytes, the code's first line, the instruction; 0 when it has no line. */

/* 3.9: pairs of increments of byte offset and line. */
int sp_lines_numbers(const uint8_t *table, size_t size, int first, uint64_t offset);

/* 3.10: ranges, each a length in bytes and a line increment (-128: no line). */
int sp_lines_table(const uint8_t *table, size_t size, int first, uint64_t offset);

/* 3.11 on: locations of runs of 2-byte code units; `unit` counts those. */
int sp_lines_locations(const uint8_t *table, size_t size, int first, uint64_t unit);

#endif
