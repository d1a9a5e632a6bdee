/* Fuzz target: tensor files (safetensors), as weights of a small net. Whatever the bytes, there are weights or an error
 * that names the file; weights are exactly the net's and finite, and written and read again they are the same.
 */
#include "tests/fuzz/fuzz.h"

#include "exec/kernel/weights.h"
#include "models/build/build.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_ROOM = 64 };

/* Not assert(): the fuzzer must see it in every build. */
static void require(int truth) {
  if (!truth) abort();
}

static void write_all(const char *path, const uint8_t *bytes, size_t count) {
  FILE *out = fopen(path, "wb");
  require(out != NULL);
  require(fwrite(bytes, 1, count, out) == count);
  require(fclose(out) == 0);
}

/* BN and FC: bn.weight, bn.bias, bn.running_mean and bn.running_var of 1 number each, fc.weight of 2x2, fc.bias of 2.
 */
static sn_net *make_net(void) {
  sn_err err = SN_ERR_INIT;
  sn_builder *b = sn_builder_new("fuzz", 1, 1, 1, 2, &err);
  sn_build_softmax(b, sn_build_fc(b, sn_build_bn(b, SN_DATA_LAYER, "bn"), 2, "fc"), "softmax");
  return sn_builder_finish(b, NULL, &err);
}

static sn_state *make_state(const sn_net *net, uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  sn_state *state = sn_state_new(net, &(sn_hyper){.seed = seed}, &err);
  require(state != NULL);
  return state;
}

static sn_status load(const char *path, sn_state *state) {
  sn_err err = SN_ERR_INIT;
  sn_weights *weights = sn_weights_open(path, state->net, &err);
  require((weights == NULL) == (err.code != SN_OK));
  if (weights) sn_weights_read(weights, state, &err);
  require(err.code == SN_OK || strstr(err.text, path) != NULL);
  sn_weights_close(weights);
  return err.code;
}

static void compare(const sn_state *a, const sn_state *b) {
  for (uint64_t i = 0; i < a->net->parameters; i++) require(isfinite(a->parameters[i]));
  require(memcmp(a->parameters, b->parameters, a->net->parameters * sizeof(float)) == 0);
  require(memcmp(a->statistics, b->statistics, 2 * sizeof(float)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char folder[] = "/tmp/fuzz_weights.XXXXXX", path[NAME_ROOM];
  sn_err err = SN_ERR_INIT;
  require(mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/weights", folder);
  write_all(path, data, size);
  sn_net *net = make_net();
  require(net != NULL);
  sn_state *state = make_state(net, 1), *again = make_state(net, 2);
  if (load(path, state) == SN_OK) {
    require(sn_weights_save(path, SN_SAVE_WEIGHTS, state, &err) == SN_OK);
    require(load(path, again) == SN_OK);
    compare(state, again);
  }
  sn_state_free(state);
  sn_state_free(again);
  sn_net_free(net);
  unlink(path);
  require(rmdir(folder) == 0);
  return 0;
}
