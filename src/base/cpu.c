/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu.h"

#include <stddef.h>
#include <string.h>

#if TQ_X86
#include <cpuid.h>
#elif TQ_ARM64 && defined(__linux__)
#include <sys/auxv.h>
#endif

static const struct {
    const char *name;
    uint32_t needs;
} rows[] = {
#define CPU_FEATURE(symbol, name, needs, text) {name, needs},
#include "base/cpu.def"
#undef CPU_FEATURE
};

#if TQ_X86
static bool has(uint32_t cpuid_register, uint32_t bits)
{
    return (cpuid_register & bits) == bits;
}

/* The registers that the operating system saves: without it, using them faults. */
static uint32_t saved_state(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static uint32_t probe(void)
{
    uint32_t a, b, c, d, a7, b7, c7, d7, features = 0;
    const uint32_t ymm = 0x6, zmm = 0xE6;
    const uint32_t avx_fma_f16c_osxsave = 1u << 28 | 1u << 12 | 1u << 29 | 1u << 27;
    const uint32_t f_dq_bw_vl = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, avx_fma_f16c_osxsave))
        return 0;
    uint32_t saved = saved_state();
    if (!has(saved, ymm) || !__get_cpuid_count(7, 0, &a7, &b7, &c7, &d7))
        return 0;
    if (has(b7, 1u << 5))
        features |= TQ_CPU_AVX2;
    if (has(saved, zmm) && has(b7, f_dq_bw_vl)) {
        features |= TQ_CPU_AVX512;
        if (has(c7, 1u << 11))
            features |= TQ_CPU_AVX512VNNI;
        if (has(c7, 1u << 1))
            features |= TQ_CPU_AVX512VBMI;
    }
    if (a7 >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && has(a, 1u << 4))
        features |= TQ_CPU_AVXVNNI;
    return features;
}
#elif TQ_ARM64
static uint32_t probe(void)
{
    uint32_t features = TQ_CPU_NEON; /* part of the architecture's baseline */
#if defined(__linux__)
    if (getauxval(AT_HWCAP) & 1ul << 20) /* HWCAP_ASIMDDP */
        features |= TQ_CPU_DOTPROD;
#elif defined(__APPLE__)
    features |= TQ_CPU_DOTPROD; /* every Apple processor that runs macOS */
#endif
    return features;
}
#else
static uint32_t probe(void)
{
    return 0;
}
#endif

static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    while (list && *list) {
        size_t item = strcspn(list, ", ");
        if (item == length && memcmp(list, name, length) == 0)
            return true;
        list += item;
        list += strspn(list, ", ");
    }
    return false;
}

static bool is_name(const char *text, size_t length)
{
    for (int i = 0; i < TQ_CPU_FEATURES; i++)
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, text, length) == 0)
            return true;
    return false;
}

const char *tq_cpu_unknown_name(const char *list, size_t *length)
{
    while (list && *list) {
        list += strspn(list, ", ");
        *length = strcspn(list, ", ");
        if (*length && !is_name(list, *length))
            return list;
        list += *length;
    }
    return NULL;
}

uint32_t tq_cpu_detect(const char *disabled)
{
    uint32_t found = probe(), usable = TQ_CPU_SCALAR;
    /* Rows stand after what they need, so one pass settles the chain. */
    for (int i = 1; i < TQ_CPU_FEATURES; i++)
        if ((found >> i & 1) && (usable & rows[i].needs) == rows[i].needs && !is_listed(disabled, rows[i].name))
            usable |= 1u << i;
    return usable;
}

const char *tq_cpu_name(int index)
{
    return index >= 0 && index < TQ_CPU_FEATURES ? rows[index].name : NULL;
}

tq_status tq_cpu_check_byte_order(bool is_big_endian, tq_error *error)
{
    if (!is_big_endian)
        return TQ_OK;
    return tq_fail(
        error, TQ_MACHINE, TQ_NO_OFFSET,
        "this machine is big-endian; models run on little-endian machines alone (here they can be read, edited "
        "and written)");
}
