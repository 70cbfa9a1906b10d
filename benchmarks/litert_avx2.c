/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded by litert_avx2.py: answers ud2 as cpuid, without AVX-512, AVX-VNNI and AMX.
 */
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#define BIT(n) (1u << (n))

/* Bits of leaf 7. */
#define EBX_AVX512 (BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31))
#define ECX_AVX512 (BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14))
#define EDX_AVX512_AMX (BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25))
#define EAX_1_AVXVNNI_BF16_AMX (BIT(4) | BIT(5) | BIT(21) | BIT(23))

static void answer(int number, siginfo_t *info, void *context)
{
    (void)info;
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *at = (const unsigned char *)(uintptr_t)r[REG_RIP];
    unsigned eax, ebx, ecx, edx;
    if (at[0] != 0x0f || at[1] != 0x0b) { /* another illegal instruction: it ends the process when it runs again */
        signal(number, SIG_DFL);
        return;
    }
    const unsigned leaf = (unsigned)r[REG_RAX], part = (unsigned)r[REG_RCX];
    __cpuid_count(leaf, part, eax, ebx, ecx, edx);
    if (leaf == 7 && part == 0) {
        ebx &= ~EBX_AVX512;
        ecx &= ~ECX_AVX512;
        edx &= ~EDX_AVX512_AMX;
    }
    if (leaf == 7 && part == 1) {
        eax &= ~EAX_1_AVXVNNI_BF16_AMX;
        edx = 0; /* AVX-VNNI of 8 and 16 bits, AVX10 */
    }
    r[REG_RAX] = eax, r[REG_RBX] = ebx, r[REG_RCX] = ecx, r[REG_RDX] = edx;
    r[REG_RIP] += 2;
}

__attribute__((constructor)) static void begin(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = answer;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, NULL);
}
