/* Trying what the kernel can do, on throw-away children and files. Slow (milliseconds).
 * */
#ifndef SP_SYS_TRIAL_H
#define SP_SYS_TRIAL_H

struct sp_host;

/* A child under a filter with a listener of ours: fills listener, wait_killable,
 * sync_wake, addfd_send, pidfd_getfd, process_vm_readv and memory_file. */
void sp_trial_child(struct sp_host *host);

/* Fills user_namespaces, cgroup_writable and tmpfile. */
void sp_trial_places(struct sp_host *host);

#endif
