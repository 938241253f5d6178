/* `sandpit show --follow`: the events of a program that is still running. */
#ifndef SP_CLI_TRACE_FOLLOW_H
#define SP_CLI_TRACE_FOLLOW_H

struct sp_show_options;

/* Prints events of the stream at `path` ("-": standard input) as they come, up to its `end` or to the
 * end of the pipe; a file is waited on to grow. Returns the exit code. */
int sp_cli_follow(const struct sp_show_options *options, const char *path);

#endif
