/* Quotient: whole numbers divided as Python divides them: exactly, then rounded once, to the nearest double, ties to
 * even. */
#ifndef SN_SIM_MEMORY_QUOTIENT_H
#define SN_SIM_MEMORY_QUOTIENT_H

#include <stdint.h>

/* n / (a x b); a and b above 0 and below 2^63. */
double sn_quotient(int64_t n, uint64_t a, uint64_t b);

#endif
