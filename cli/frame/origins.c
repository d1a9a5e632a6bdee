/* Origins; see the header. */
#include "cli/frame/origins.h"

#include "base/path.h"
#include "exec/data/batch.h"
#include "models/zoo/zoo.h"

#include <stdlib.h>
#include <string.h>

const char *sn_origin_file(const char *name) {
  size_t length = name ? strlen(name) : 0;
  bool is_path = name && (strchr(name, '/') || (length >= 5 && strcmp(name + length - 5, ".json") == 0));
  return is_path ? name : NULL;
}

char *sn_origin_net(const char *net) {
  return net && sn_net_is_file(net) ? strndup(net, (size_t)(sn_net_file_end(net) - net)) : NULL;
}

static void add(sn_origins *o, const char *what, const char *path) {
  const char *real = path ? sn_path_real(path) : NULL;
  if (real) o->all[o->count++] = (sn_origin){what, real};
}

sn_run sn_origins_with(const sn_args *args, const sn_run *run, sn_origins *origins) {
  sn_run whole = *run;
  char *labels = args->data ? sn_batches_labels(args->data) : NULL, *net = sn_origin_net(args->plain_net);
  origins->count = 0;
  add(origins, "network", net);
  add(origins, "GPU profile", sn_origin_file(args->gpu));
  add(origins, "data", args->data);
  add(origins, "labels", labels);
  add(origins, "weights", args->files.load);
  free(labels);
  free(net);
  whole.n_origins = origins->count;
  whole.origins = origins->all;
  return whole;
}

void sn_origins_free(sn_origins *origins) {
  for (uint32_t i = 0; i < origins->count; i++) free((void *)origins->all[i].path);
}
