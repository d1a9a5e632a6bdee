/* Steps of a route as text: "fc backward softmax.dx:r fc.dx:w", each tensor with how it is accessed: read, written,
 * modified. */
#ifndef SN_TESTS_STEP_TEXT_H
#define SN_TESTS_STEP_TEXT_H

#include "sim/graph/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

static inline void check_step(const sn_route *r, uint32_t s, const char *expected) {
  char text[400], name[SN_TENSOR_NAME];
  const sn_step *step = &r->steps[s];
  int used = snprintf(text, sizeof text, "%s %s", r->net->layers[step->layer].name, sn_pass_name(step->pass));
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access a = r->accesses[step->first_access + i];
    used += snprintf(text + used, sizeof text - (size_t)used, " %s:%c", sn_tensor_name(r, a.tensor, name, sizeof name),
                     "rwm"[a.mode]);
  }
  assert_string_equal(text, expected);
}

#endif
