/* SPDX-License-Identifier: Apache-2.0
 *
 * How many processors this process may use: those of its affinity mask, and no more than the quota of CPU time of its
 * control groups (cgroups, Linux) lets it keep busy.
 */
#ifndef TQ_BASE_PROCESSORS_H
#define TQ_BASE_PROCESSORS_H

/* At least 1.  The quota is read once a process, the affinity mask each time. */
long tq_processors(void);

/* The smallest quota, in processors, rounded up, of the groups that the file `groups` (/proc/self/cgroup) names, and of
   those around them, below the folder `root` (/sys/fs/cgroup), where version 2 is mounted or, in folders of their own,
   the controllers of version 1.  0: there is none.

   Sources: Documentation/admin-guide/cgroup-v2.rst, cpu.max; Documentation/scheduler/sched-bwc.rst, cpu.cfs_quota_us.
 */
long tq_cgroup_quota(const char *groups, const char *root);

#endif
