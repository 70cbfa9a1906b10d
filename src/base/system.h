/* SPDX-License-Identifier: Apache-2.0
 *
 * For files that call system functions beyond C11; they include it first.
 *
 * glibc, musl and Cygwin hide such functions under -std=c11 unless _GNU_SOURCE asks for them.  macOS and the BSDs show
 * them unless a file asks for a standard by name (_POSIX_C_SOURCE hides madvise and MAP_ANON there), so no file does.
 */
#ifndef TQ_BASE_SYSTEM_H
#define TQ_BASE_SYSTEM_H

#define _GNU_SOURCE
#define _DARWIN_C_SOURCE

#endif
