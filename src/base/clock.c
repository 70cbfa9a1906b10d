/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system.h"

#include "base/clock.h"

#ifdef _WIN32
#include <windows.h>

uint64_t tq_nanoseconds(void)
{
    LARGE_INTEGER now, rate;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&rate);
    return (uint64_t)((double)now.QuadPart * 1e9 / (double)rate.QuadPart);
}

uint64_t tq_nanoseconds_coarse(void)
{
    return (uint64_t)GetTickCount64() * 1000000u;
}
#else
#include <time.h>

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now = {0, 0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t tq_nanoseconds(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t tq_nanoseconds_coarse(void)
{
#ifdef CLOCK_MONOTONIC_COARSE
    return read_clock(CLOCK_MONOTONIC_COARSE);
#else
    return tq_nanoseconds();
#endif
}
#endif
