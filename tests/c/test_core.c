/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of the core that need no Python: built with the sanitizers and run by tests/whole/test_c_core.py.
 * Prints what failed; exits 1 where anything did.
 */
#include "check.h"

unsigned checks_made, checks_failed;

int main(void)
{
    test_base();
    test_file();
    test_processors();
    test_shared();
    test_arena_offsets();
    test_flatbuffer();
    test_model();
    test_flexbuffer();
    test_sparsity();
    test_fixed_math();
    test_rounding();
    printf("%u checks, %u failed\n", checks_made, checks_failed);
    return checks_failed != 0;
}
