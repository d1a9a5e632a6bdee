/* Origins: the files that a command line makes a run from, as the store keeps them: by their absolute paths, so that
 * another command, started in another folder, knows them (cli/frame/file_conflict.h, sim/sweep/replay.h).
 *
 *   sn_origins origins;
 *   const sn_run whole = sn_origins_with(args, run, &origins);      looks at both as long as it is used
 *   sn_store_put(store, &whole, &id, &err);
 *   sn_origins_free(&origins);
 */
#ifndef SN_CLI_FRAME_ORIGINS_H
#define SN_CLI_FRAME_ORIGINS_H

#include "cli/options/options.h"
#include "sim/ask/run.h"

enum { SN_ORIGINS = 5 };

typedef struct sn_origins {
  uint32_t count;
  sn_origin all[SN_ORIGINS];
} sn_origins;

/* The run and what --net, --gpu, --data and --load-weights name. A path that leads nowhere, or for which there is no
 * memory, is left out. */
sn_run sn_origins_with(const sn_args *args, const sn_run *run, sn_origins *origins);
void sn_origins_free(sn_origins *origins);

/* The file behind the name of a GPU, which is a path as sn_device_load() has it; else NULL. */
const char *sn_origin_file(const char *name);
/* The file behind the name of a network, without what sn_net_load() lets stand behind its path; to be freed, NULL where
 * there is none. */
char *sn_origin_net(const char *net);

#endif
