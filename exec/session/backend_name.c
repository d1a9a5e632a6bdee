/* Back ends by name; see exec/session/session.h. */
#include "exec/session/session.h"

#include <string.h>

static const char *const backend_names[SN_EXEC_BACKENDS] = {"cpu", "cuda"};

const char *sn_exec_backend_name(sn_exec_backend backend) {
  return backend_names[backend];
}

sn_status sn_exec_backend_parse(const char *text, sn_exec_backend *backend, sn_err *err) {
  for (*backend = 0; *backend < SN_EXEC_BACKENDS; ++*backend)
    if (strcmp(text, backend_names[*backend]) == 0) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "--backend: \"%.40s\" is none of: cpu, cuda", text);
}
