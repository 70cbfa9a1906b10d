/* SPDX-License-Identifier: Apache-2.0
 *
 * How many processors this process may use: the processors of its affinity mask, and at most as many as the CPU quota
 * of its control groups (cgroups, Linux) keeps busy.
 */
#ifndef TQ_BASE_PROCESSORS_H
#define TQ_BASE_PROCESSORS_H

/* At least 1.  The quota is read once a process, the affinity mask each time. */
long tq_processors(void);

/* The smallest quota, in processors, rounded up, of the groups in the file `groups` (/proc/self/cgroup) and of their
   parents.  root: the folder (/sys/fs/cgroup) where version 2 is mounted or, in subfolders, the controllers of
   version 1. 0: there is no quota.

   Sources: Documentation/admin-guide/cgroup-v2.rst, cpu.max; Documentation/scheduler/sched-bwc.rst, cpu.cfs_quota_us.
 */
long tq_cgroup_quota(const char *groups, const char *root);

#endif
