/* SPDX-License-Identifier: Apache-2.0
 *
 * Netron's quantization line.  Its rule (view.Quantization.toString, netron 9.3): for each i below the
 * longest of scale, zero_point, min and max,
 *     min ≤ scale * (q - zero_point) ≤ max
 * where a missing value leaves its part out, and so do zero point 0, scale 1, min 0 and max 0; a
 * negative zero point is added; parentheses stand only around q - zero_point under a scale.  With more
 * than one line each starts with its index, padded to the width of their count.  Values print as in
 * JavaScript: a float32 as the equal double.
 */
#include "python/model/netron.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ECMA-262 Number::toString(x, 10): the shortest digits that read back as x, written without an exponent
   from 1e-6 up to below 1e21.  Python's repr has the same digits under another layout. */
static int js_number(double value, char out[64])
{
    if (isnan(value))
        return snprintf(out, 64, "NaN");
    if (isinf(value))
        return snprintf(out, 64, value < 0 ? "-Infinity" : "Infinity");
    if (value == 0)
        return snprintf(out, 64, "0");
    char *shortest = PyOS_double_to_string(fabs(value), 'r', 0, 0, NULL);
    if (!shortest)
        return -1;

    /* digits d and exponent n such that value = 0.d * 10^n, from "123.45", "1e-07" or "1.5e+16" */
    char digits[32];
    int count = 0, point = -1, exponent = 0;
    for (const char *p = shortest; *p; p++) {
        if (*p == '.')
            point = count;
        else if (*p == 'e') {
            exponent = atoi(p + 1);
            break;
        } else if (count < 31)
            digits[count++] = *p;
    }
    PyMem_Free(shortest);
    int n = exponent + (point < 0 ? count : point), lead = 0;
    while (lead < count - 1 && digits[lead] == '0')
        lead++, n--;
    count -= lead;
    memmove(digits, digits + lead, (size_t)count);
    while (count > 1 && digits[count - 1] == '0')
        count--;

    const char *sign = value < 0 ? "-" : "";
    static const char zeros[] = "00000000000000000000";
    if (n > 21 || n < -5) {
        int e = n - 1;
        return snprintf(out, 64, "%s%c%s%.*se%c%d", sign, digits[0], count > 1 ? "." : "", count - 1, digits + 1,
                        e < 0 ? '-' : '+', abs(e));
    }
    if (n <= 0)
        return snprintf(out, 64, "%s0.%.*s%.*s", sign, -n, zeros, count, digits);
    if (n >= count)
        return snprintf(out, 64, "%s%.*s%.*s", sign, count, digits, n - count, zeros);
    return snprintf(out, 64, "%s%.*s.%.*s", sign, n, digits, count - n, digits + n);
}

typedef struct {
    const float *data;
    npy_intp count;
} floats;

typedef struct {
    floats scale, min, max;
    const int64_t *zero_point;
    npy_intp zero_points;
} values;

static floats floats_of(PyObject *array)
{
    return (floats){PyArray_DATA((PyArrayObject *)array), PyArray_SIZE((PyArrayObject *)array)};
}

/* Element i; past the end 0, which prints nothing. */
static float at(floats f, npy_intp i)
{
    return i < f.count ? f.data[i] : 0;
}

/* The line of index i; `out` has room for four values of at most 30 characters. */
static int line_of(const values *v, npy_intp i, char out[256])
{
    static const char le[] = " \xe2\x89\xa4 ";
    char middle[128] = "q", number[64];
    bool inner = false;
    int64_t zero = i < v->zero_points ? v->zero_point[i] : 0;
    if (zero) {
        uint64_t size = zero > 0 ? (uint64_t)zero : -(uint64_t)zero;
        snprintf(middle, sizeof middle, "q %c %llu", zero > 0 ? '-' : '+', (unsigned long long)size);
        inner = true;
    }
    float scale = at(v->scale, i);
    if (i < v->scale.count && scale != 1) {
        char inside[64];
        snprintf(inside, sizeof inside, "%.60s", middle);
        if (js_number(scale, number) < 0)
            return -1;
        snprintf(middle, sizeof middle, inner ? "%s * (%s)" : "%s * %s", number, inside);
    }
    float low = at(v->min, i), high = at(v->max, i);
    size_t length = 0;
    if (low != 0) {
        if (js_number(low, number) < 0)
            return -1;
        length = (size_t)snprintf(out, 256, "%s%s", number, le);
    }
    length += (size_t)snprintf(out + length, 256 - length, "%s", middle);
    if (high != 0) {
        if (js_number(high, number) < 0)
            return -1;
        snprintf(out + length, 256 - length, "%s%s", le, number);
    }
    return 0;
}

static npy_intp larger(npy_intp a, npy_intp b)
{
    return a > b ? a : b;
}

PyObject *tq_py_netron_line(PyObject *scale, PyObject *zero_point, PyObject *min, PyObject *max)
{
    values v = {floats_of(scale), floats_of(min), floats_of(max), PyArray_DATA((PyArrayObject *)zero_point),
                PyArray_SIZE((PyArrayObject *)zero_point)};
    npy_intp count = larger(larger(v.scale.count, v.zero_points), larger(v.min.count, v.max.count));
    char width[16], line[256];
    int digits = snprintf(width, sizeof width, "%lld", (long long)count);
    PyObject *lines = PyList_New(count), *newline = PyUnicode_FromString("\n"), *text = NULL;
    for (npy_intp i = 0; lines && i < count; i++) {
        char numbered[300];
        PyObject *item = NULL;
        if (line_of(&v, i, line) == 0) {
            snprintf(numbered, sizeof numbered, "%*lld: %s", digits, (long long)i, line);
            item = PyUnicode_FromString(count > 1 ? numbered : line);
        }
        if (!item)
            Py_CLEAR(lines);
        else
            PyList_SET_ITEM(lines, i, item);
    }
    if (lines && newline)
        text = PyUnicode_Join(newline, lines);
    Py_XDECREF(lines);
    Py_XDECREF(newline);
    return text;
}
