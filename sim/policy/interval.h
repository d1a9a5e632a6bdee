/* Interval of a climb (sim/corun/climb.h): the steps in which profiling raises an operation's threads, as people write
 * it. */
#ifndef SN_SIM_POLICY_INTERVAL_H
#define SN_SIM_POLICY_INTERVAL_H

#include "base/err.h"

#include <stdint.h>

/* So many threads more each time; or each count about sqrt 2 times the one before. */
enum { SN_INTERVAL_GEOMETRIC = 0, SN_INTERVAL_DEFAULT = 4 };

/* "4", "geometric". SN_BAD_USAGE; whether a device has as many cores is seen when it is profiled. */
sn_status sn_interval_parse(const char *text, uint32_t *interval, sn_err *err);

enum { SN_INTERVAL_NAME = 16 };

/* What would be parsed, into `text` of SN_INTERVAL_NAME bytes; returns it. */
char *sn_interval_name(uint32_t interval, char *text);

#endif
