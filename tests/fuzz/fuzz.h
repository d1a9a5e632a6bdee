/* What every fuzz target defines: one input in, 0 out. libFuzzer (SNSIM_SANITIZE=fuzzer) calls it with inputs it makes
 * up, replay.c with the stored ones. A target must not exit, print, or keep state between calls.
 */
#ifndef SN_TESTS_FUZZ_H
#define SN_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
