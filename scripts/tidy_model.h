/* What clang-tidy's analyzer must know about base/err.c, which it cannot see from another file: a failing function
 * returns a code other than SN_OK and leaves it in the error. Without that it follows paths on which sn_fail() returned
 * SN_OK. Included in front of every product file by scripts/tidy; no part of any build.
 */
#ifndef SN_SCRIPTS_TIDY_MODEL_H
#define SN_SCRIPTS_TIDY_MODEL_H

#include "base/err.h"

static inline sn_status tidy_failed(sn_err *err, sn_status code) {
  if (err->code == SN_OK) err->code = code;
  return err->code;
}

#define sn_fail(err, code, ...) ((void)(sn_fail)(err, code, __VA_ARGS__), tidy_failed(err, code))
#define sn_fail_memory(err)     ((void)(sn_fail_memory)(err), tidy_failed(err, SN_NO_MEMORY))

#endif
