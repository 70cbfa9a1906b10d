/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system.h"

#include "base/processors.h"

#if defined(_WIN32)

long tq_processors(void)
{
    return 1; /* there is no pool of threads yet */
}

#else

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, LINE_SIZE = 4096 + 256 };

/* ---- a group's quota ---- */

/* The first line of the file folder/name; false where there is none. */
static bool read_line(const char *folder, const char *name, char *line, int size)
{
    char path[PATH_SIZE + 64];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return false;
    FILE *file = fopen(path, "re");
    bool found = file && fgets(line, size, file);
    if (file)
        fclose(file);
    return found;
}

/* quota / period, rounded up; 0: no limit. */
static long processors_of(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return 0;
    const long long whole = quota / period + (quota % period != 0);
    return whole > LONG_MAX ? LONG_MAX : (long)whole;
}

/* The quota of one group, a folder, in either version; 0: none. */
static long quota_of(const char *folder)
{
    char line[64];
    if (read_line(folder, "cpu.max", line, sizeof line)) { /* "max 100000", or "150000 100000" */
        char *end;
        const long long quota = strtoll(line, &end, 10);
        return processors_of(quota, strtoll(end, NULL, 10));
    }
    if (!read_line(folder, "cpu.cfs_quota_us", line, sizeof line)) /* -1: none */
        return 0;
    const long long quota = strtoll(line, NULL, 10);
    return read_line(folder, "cpu.cfs_period_us", line, sizeof line) ? processors_of(quota, strtoll(line, NULL, 10))
                                                                     : 0;
}

static long smaller(long a, long b)
{
    return !a || (b && b < a) ? b : a;
}

/* The smallest quota of the group `path` in the hierarchy of the folder `mount`, and of its parents.  In a container
   the root is often the container's group, and `path` the machine's: missing folders are skipped. */
static long quota_along(const char *mount, const char *path)
{
    char folder[PATH_SIZE];
    long least = 0;
    const size_t root = strlen(mount);
    if (path[0] != '/' || snprintf(folder, sizeof folder, "%s%s", mount, path) >= (int)sizeof folder)
        return 0;
    for (;;) {
        least = smaller(least, quota_of(folder));
        char *slash = strrchr(folder + root, '/');
        if (!slash)
            return least;
        *slash = 0;
    }
}

/* ---- all groups ---- */

static bool has_cpu(const char *controllers)
{
    for (const char *at = controllers; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, "cpu", 3) == 0 && (at[3] == ',' || !at[3]))
            return true;
    return false;
}

/* The quota of a line "number:controllers:path"; version 2 has the number 0 and no controllers. */
static long quota_of_line(char *line, const char *root)
{
    char mount[PATH_SIZE], *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path)
        return 0;
    line[strcspn(line, "\n")] = 0;
    *controllers++ = *path++ = 0;
    if (!*controllers)
        return quota_along(root, path);
    if (!has_cpu(controllers) || snprintf(mount, sizeof mount, "%s/%s", root, controllers) >= (int)sizeof mount)
        return 0;
    const long joined = quota_along(mount, path); /* /sys/fs/cgroup/cpu,cpuacct, or a link to it */
    return joined || snprintf(mount, sizeof mount, "%s/cpu", root) >= (int)sizeof mount ? joined
                                                                                        : quota_along(mount, path);
}

long tq_cgroup_quota(const char *groups, const char *root)
{
    char line[LINE_SIZE];
    long least = 0;
    FILE *file = fopen(groups, "re");
    while (file && fgets(line, sizeof line, file))
        least = smaller(least, quota_of_line(line, root));
    if (file)
        fclose(file);
    return least;
}

/* ---- this process ---- */

static long quota;

static void find_quota(void)
{
#if defined(__linux__)
    quota = tq_cgroup_quota("/proc/self/cgroup", "/sys/fs/cgroup");
#endif
}

static long usable(void)
{
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
#endif
    return sysconf(_SC_NPROCESSORS_ONLN);
}

long tq_processors(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_quota);
    const long found = usable();
    return found < 1 ? 1 : smaller(found, quota);
}

#endif
