/* SPDX-License-Identifier: Apache-2.0
 *
 * base/processors.h: quotas of invented control groups, of both versions.
 */
#include "base/system.h"

#include "base/processors.h"

#include "check.h"

#ifndef _WIN32
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct made_file {
    const char *path, *text;
} made_file;

enum { FILES = 5 };

/* The expected processors, the text of /proc/self/cgroup, and the files of groups. */
static const struct row {
    long processors;
    const char *groups;
    made_file files[FILES];
} rows[] = {
    {0, "", {{NULL, NULL}}},
    {0, "0::/\n", {{NULL, NULL}}},
    {0, "0::/\n", {{"cpu.max", "max 100000\n"}}},
    {2, "0::/\n", {{"cpu.max", "150000 100000\n"}}},
    {1, "0::/\n", {{"cpu.max", "1000 100000\n"}}},
    {4, "0::/a/b\n", {{"a/b/cpu.max", "400000 100000\n"}}},
    /* the parent has the smaller quota; the group none */
    {3, "0::/a/b\n", {{"a/b/cpu.max", "max 100000\n"}, {"a/cpu.max", "300000 100000\n"}}},
    {2, "0::/a/b\n", {{"a/b/cpu.max", "800000 100000\n"}, {"a/cpu.max", "200000 100000\n"}}},
    /* in a container: the path is the machine's, and the root is the container's group */
    {5, "0::/machine/abc\n", {{"cpu.max", "500000 100000\n"}}},
    /* version 1 */
    {0, "3:cpu,cpuacct:/\n", {{"cpu,cpuacct/cpu.cfs_quota_us", "-1\n"}, {"cpu,cpuacct/cpu.cfs_period_us", "100000\n"}}},
    {3,
     "3:cpu,cpuacct:/\n",
     {{"cpu,cpuacct/cpu.cfs_quota_us", "250000\n"}, {"cpu,cpuacct/cpu.cfs_period_us", "100000\n"}}},
    {3, "3:cpuacct,cpu:/a\n", {{"cpu/a/cpu.cfs_quota_us", "30000\n"}, {"cpu/a/cpu.cfs_period_us", "10000\n"}}},
    {0, "3:cpuset:/a\n", {{"cpuset/a/cpu.cfs_quota_us", "30000\n"}, {"cpuset/a/cpu.cfs_period_us", "10000\n"}}},
    {0, "3:cpu:/\n", {{"cpu/cpu.cfs_quota_us", "30000\n"}}}, /* no period */
    /* both, as machines between the two have them */
    {2, "1:cpu:/a\n0::/a\n", {{"cpu/a/cpu.cfs_quota_us", "20000\n"}, {"cpu/a/cpu.cfs_period_us", "10000\n"}}},
    /* no quotas */
    {0, "0::/\n", {{"cpu.max", ""}}},
    {0, "0::/\n", {{"cpu.max", "150000"}}},
    {0, "0::/\n", {{"cpu.max", "-5 100000\n"}}},
    {0, "0::/\n", {{"cpu.max", "100000 0\n"}}},
    {0, "0::/\n", {{"cpu.max", "nonsense\n"}}},
    {0, "nonsense\n:\n::\n0:\n0::\n0::relative\n", {{"cpu.max", "max 100000\n"}}},
};

static void put(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0);
    if (file)
        fclose(file);
}

static int drop(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

static void test_row(const struct row *row)
{
    const char *temporary = getenv("TMPDIR");
    char folder[256], groups[300], root[300];
    snprintf(folder, sizeof folder, "%.200s/tq_groups_XXXXXX", temporary ? temporary : P_tmpdir);
    CHECK(mkdtemp(folder) != NULL);
    snprintf(groups, sizeof groups, "%s/self", folder);
    snprintf(root, sizeof root, "%s/root", folder);
    put(folder, "self", row->groups);
    for (int i = 0; i < FILES && row->files[i].path; i++)
        put(root, row->files[i].path, row->files[i].text);
    const long found = tq_cgroup_quota(groups, root);
    if (found != row->processors)
        fprintf(stderr, "row %d: %ld\n", (int)(row - rows), found);
    CHECK(found == row->processors);
    CHECK(nftw(folder, drop, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

void test_processors(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        test_row(&rows[i]);
    CHECK(tq_cgroup_quota("/nowhere/at/all", "/nowhere") == 0);
    CHECK(tq_processors() >= 1);
}

#else

void test_processors(void)
{
    CHECK(tq_processors() >= 1);
}

#endif
