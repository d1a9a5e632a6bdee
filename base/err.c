/* Status codes and errors; see the header. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

sn_status sn_fail(sn_err *err, sn_status code, const char *format, ...) {
  if (err->code != SN_OK) return err->code;
  va_list args;
  va_start(args, format);
  vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  err->code = code;
  return code;
}

sn_status sn_fail_memory(sn_err *err) {
  return sn_fail(err, SN_NO_MEMORY, "out of host memory; close other programs or choose a smaller network");
}

void sn_err_prefix(sn_err *err, const char *format, ...) {
  char text[sizeof err->text];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  size_t used = length < 0 ? sizeof text : (size_t)length + 2;
  if (used >= sizeof text) return;
  memcpy(text + used - 2, ": ", 2);
  size_t kept = strnlen(err->text, sizeof text - used - 1); /* what is too long loses its end */
  memcpy(text + used, err->text, kept);
  text[used + kept] = '\0';
  memcpy(err->text, text, used + kept + 1);
}

const char *sn_status_name(sn_status code) {
  static const char *const names[] = {
#define SN_STATUS_NAME(code, exit_code, name) name,
      SN_STATUS_LIST(SN_STATUS_NAME)
#undef SN_STATUS_NAME
  };
  return (unsigned)code < sizeof names / sizeof names[0] ? names[code] : "unknown status";
}

int sn_status_exit_code(sn_status code) {
  static const int exit_codes[] = {
#define SN_STATUS_EXIT(code, exit_code, name) exit_code,
      SN_STATUS_LIST(SN_STATUS_EXIT)
#undef SN_STATUS_EXIT
  };
  return (unsigned)code < sizeof exit_codes / sizeof exit_codes[0] ? exit_codes[code] : 5;
}
