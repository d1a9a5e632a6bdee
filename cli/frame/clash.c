/* Files that must differ; see the header. Every pair is compared: there are twenty-eight. */
#include "cli/frame/clash.h"

#include "base/path.h"

#include <string.h>

enum { PATH_ROOM = 4096 };

typedef struct use {
  const char *option, *path; /* NULL: no file */
} use;

/* The file behind a name of a network or GPU, which is a path as sn_net_load() and sn_device_load() have it. */
static const char *file_of(const char *name) {
  size_t length = name ? strlen(name) : 0;
  bool is_path = name && (strchr(name, '/') || (length >= 5 && strcmp(name + length - 5, ".json") == 0));
  return is_path ? name : NULL;
}

static const char *written(const char *path) {
  return path && strcmp(path, "-") != 0 ? path : NULL;
}

sn_status sn_clash_check(const sn_args *args, sn_err *err) {
  char database[PATH_ROOM];
  sn_err reason = SN_ERR_INIT; /* told where the database is needed */
  bool known = sn_args_database(args, database, sizeof database, &reason) == SN_OK;
  const use uses[] = {{"--net", file_of(args->net)},
                      {"--gpu", file_of(args->gpu)},
                      {"--grid", args->grid},
                      {"--data", args->data},
                      {"the database", known ? database : NULL},
                      {"--plan", written(args->plan)},
                      {"--trace", written(args->trace)},
                      {"--output", written(args->output)}};
  for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++)
    for (size_t j = 0; j < i; j++)
      if (uses[i].path && uses[j].path && sn_path_same(uses[i].path, uses[j].path))
        return sn_fail(err, SN_BAD_USAGE, "%s and %s are the same file, %.300s; give each its own", uses[j].option,
                       uses[i].option, uses[i].path);
  return SN_OK;
}
