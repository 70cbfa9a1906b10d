/* SPDX-License-Identifier: Apache-2.0
 *
 * TQ_SANITIZED: 1 under the address sanitizer, else 0.  gcc defines a macro, clang a feature.
 */
#ifndef TQ_BASE_SANITIZED_H
#define TQ_BASE_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__)
#define TQ_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TQ_SANITIZED 1
#endif
#endif

#ifndef TQ_SANITIZED
#define TQ_SANITIZED 0
#endif

#endif
