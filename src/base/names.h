/* SPDX-License-Identifier: Apache-2.0
 *
 * Names that templates make of macros: the arguments are expanded first.
 */
#ifndef TQ_BASE_NAMES_H
#define TQ_BASE_NAMES_H

#define TQ_GLUE_(a, b) a##b
#define TQ_GLUE(a, b) TQ_GLUE_(a, b)
#define TQ_GLUE4_(a, b, c, d) a##b##c##d
#define TQ_GLUE4(a, b, c, d) TQ_GLUE4_(a, b, c, d)
#define TQ_TEXT_(x) #x
#define TQ_TEXT(x) TQ_TEXT_(x)

#endif
