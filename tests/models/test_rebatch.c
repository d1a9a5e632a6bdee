/* Networks for another batch (sn_net_rebatch()), their routes (sn_route_resize()) and schedules (sn_schedule_copy())
 * against those made anew with it: every network of the zoo, adapters, files of images and of volumes. */
#include "models/zoo/zoo.h"
#include "sim/graph/route_resize.h"
#include "sim/schedule/schedule.h"
#include "tests/models/zoo_shapes.h"

#include <string.h>

static void expect_same_layer(const sn_net *net, const sn_layer *a, const sn_layer *b) {
  bool same = strcmp(a->name, b->name) == 0 && a->op == b->op && a->tuning == b->tuning &&
              a->first_input == b->first_input && a->n_inputs == b->n_inputs && a->first_output == b->first_output &&
              a->n_outputs == b->n_outputs && memcmp(&a->out, &b->out, sizeof a->out) == 0 && a->planes == b->planes &&
              a->attr->planes == b->attr->planes && a->attr->weights_of == b->attr->weights_of &&
              a->parameters == b->parameters && a->macs == b->macs && a->mask_bytes == b->mask_bytes &&
              a->statistics_bytes == b->statistics_bytes;
  if (!same) fail_msg("%s, batch %u: layer \"%s\" differs", net->name, net->batch, a->name);
}

static void expect_same(const sn_net *a, const sn_net *b) {
  assert_string_equal(a->name, b->name);
  assert_int_equal(a->batch, b->batch);
  assert_int_equal(a->n_layers, b->n_layers);
  assert_int_equal(a->n_values, b->n_values);
  for (uint32_t i = 0; i < a->n_layers; i++) {
    expect_same_layer(a, &a->layers[i], &b->layers[i]);
    for (uint32_t k = 0; k < a->layers[i].n_inputs; k++)
      assert_int_equal(a->inputs[a->layers[i].first_input + k], b->inputs[b->layers[i].first_input + k]);
  }
  for (uint32_t i = 0; i < a->n_values; i++) {
    const sn_value *x = &a->values[i], *y = &b->values[i];
    assert_true(x->producer == y->producer && x->consumer == y->consumer && x->consumer_input == y->consumer_input &&
                x->dtype == y->dtype && x->bytes == y->bytes);
  }
  assert_true(a->parameters == b->parameters && a->macs == b->macs && a->data_bytes == b->data_bytes);
  assert_true(a->label_bytes == b->label_bytes && a->wide_label_bytes == b->wide_label_bytes);
  assert_int_equal(a->adapted, b->adapted);
}

/* One by one, here and of accesses: what a compiler leaves between bits is no part of them. */
static void expect_same_step(const sn_step *x, const sn_step *y) {
  assert_true(x->layer == y->layer && x->pass == y->pass && x->kernel == y->kernel && x->sum == y->sum);
  assert_true(x->parameter == y->parameter && x->share == y->share);
  assert_true(x->first_access == y->first_access && x->n_accesses == y->n_accesses);
  assert_true(x->first_permit == y->first_permit && x->n_permits == y->n_permits);
}

static void expect_same_route(const sn_route *a, const sn_route *b) {
  assert_true(a->n_steps == b->n_steps && a->n_tensors == b->n_tensors && a->n_accesses == b->n_accesses);
  assert_true(a->n_permits == b->n_permits && a->n_sums == b->n_sums && a->tensor_bytes == b->tensor_bytes);
  assert_true(a->first_backward == b->first_backward && a->first_update == b->first_update);
  for (uint32_t i = 0; i < a->n_steps; i++) expect_same_step(&a->steps[i], &b->steps[i]);
  for (uint32_t i = 0; i < a->n_accesses; i++) {
    const sn_access x = a->accesses[i], y = b->accesses[i];
    assert_true(x.tensor == y.tensor && x.mode == y.mode && x.held == y.held);
  }
  assert_memory_equal(a->output, b->output, a->net->n_values * sizeof *a->output);
  assert_memory_equal(a->gradient, b->gradient, a->net->n_values * sizeof *a->gradient);
  assert_memory_equal(a->part, b->part, a->net->n_values * sizeof *a->part);
  assert_memory_equal(a->weight_gradient, b->weight_gradient, a->net->n_layers * sizeof *a->weight_gradient);
  assert_memory_equal(a->saved, b->saved, a->net->n_layers * sizeof *a->saved);
  assert_memory_equal(a->forward_step, b->forward_step, a->net->n_layers * sizeof *a->forward_step);
  assert_memory_equal(a->backward_step, b->backward_step, a->net->n_layers * sizeof *a->backward_step);
  for (uint32_t t = 0; t < a->n_tensors; t++) {
    const sn_tensor *x = &a->tensors[t], *y = &b->tensors[t];
    assert_true(x->layer == y->layer && x->port == y->port && x->role == y->role && x->bytes == y->bytes);
  }
}

static void expect_copied(const sn_route *known, const sn_route *route, sn_recompute recompute) {
  sn_err err = SN_ERR_INIT;
  assert_true(sn_schedule_is_sizeless(recompute));
  sn_schedule *before = sn_schedule_new(known, recompute, &err), *anew = sn_schedule_new(route, recompute, &err);
  sn_schedule *copy = before ? sn_schedule_copy(before, route, &err) : NULL;
  assert_true(copy && anew && sn_schedule_same(copy, anew));
  sn_schedule_free(copy);
  sn_schedule_free(anew);
  sn_schedule_free(before);
}

static void expect_same_work(const sn_route *a, const sn_route *b) {
  for (uint32_t s = 0; a->work && s < a->n_steps; s++) {
    const sn_step_work *x = &a->work[s], *y = &b->work[s];
    assert_ptr_equal(x->called, y->called);
    assert_ptr_equal(x->conv, y->conv);
    assert_ptr_equal(x->product, y->product);
    assert_int_equal(x->columns, y->columns);
    assert_true(x->flops == y->flops && x->bytes == y->bytes && x->batch == y->batch && x->launches == y->launches);
    assert_true(x->narrow == y->narrow && x->norm == y->norm && x->channels_last == y->channels_last);
  }
}

static void expect_resized(const sn_net *first, const sn_net *turned, sn_dialect_id dialect) {
  sn_err err = SN_ERR_INIT;
  sn_route *known = sn_route_new(first, dialect, SN_ORDER_ROUTE, &err);
  sn_route *anew = sn_route_new(turned, dialect, SN_ORDER_ROUTE, &err);
  sn_route *resized = known ? sn_route_resize(known, turned, &err) : NULL;
  if (!resized || !anew) fail_msg("%s: %s", first->name, err.text);
  expect_same_route(anew, resized);
  expect_same_work(anew, resized);
  for (sn_recompute r = SN_RECOMPUTE_NONE; r <= SN_RECOMPUTE_MEMORY; r++) expect_copied(known, resized, r);
  sn_route_free(resized);
  sn_route_free(anew);
  sn_route_free(known);
}

static void expect_rebatched(const char *spec, uint32_t batch) {
  sn_err err = SN_ERR_INIT;
  sn_net *first = load(spec, 3, 0), *anew = load(spec, batch, 0), *turned = sn_net_rebatch(first, batch, &err);
  if (!turned) fail_msg("%s: %s", spec, err.text);
  expect_same(anew, turned);
  if (!first->adapted) expect_resized(first, turned, SN_DIALECT_SUPERNEURONS);
  sn_net_free(turned);
  sn_net_free(anew);
  sn_net_free(first);
}

static void every_network(void **state) {
  (void)state;
  uint32_t n_entries;
  const sn_zoo_entry *entries = sn_zoo_entries(&n_entries);
  for (uint32_t i = 0; i < n_entries; i++) expect_rebatched(entries[i].name, 1 + i % 9);
}

static void adapters_and_files(void **state) {
  (void)state;
  static const char *const specs[] = {"gpt2+lora=8", SNSIM_SOURCE_DIR "/models/examples/small_resnet.json",
                                      SNSIM_SOURCE_DIR "/models/examples/unet3d.json"};
  for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) expect_rebatched(specs[i], 7);
}

static void recordings(void **state) {
  (void)state;
  static const char *const names[] = {"resnet18", "transformer", "gan", "dense", "scaled_cnn", "lstm"};
  static const sn_dialect_id dialects[] = {SN_DIALECT_SUPERNEURONS, SN_DIALECT_PYTORCH, SN_DIALECT_PYTORCH_1_7};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char path[300];
    sn_err err = SN_ERR_INIT;
    snprintf(path, sizeof path, SNSIM_SOURCE_DIR "/tests/record/data/%s.rec.gz", names[i]);
    sn_net *first = load(path, 2, 0), *turned = sn_net_rebatch(first, 64, &err);
    if (!turned) fail_msg("%s: %s", names[i], err.text);
    for (size_t d = 0; d < sizeof dialects / sizeof dialects[0]; d++) expect_resized(first, turned, dialects[d]);
    sn_net_free(turned);
    sn_net_free(first);
  }
}

static void what_is_too_large(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load("llama:7b", 1, 0);
  assert_null(sn_net_rebatch(net, 16777216, &err));
  assert_int_equal(err.code, SN_BAD_INPUT);
  sn_net_free(net);
}

/* PyTorch's graphs save by bytes of their own. */
static void what_is_made_anew(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load("alexnet", 2, 0), *turned = sn_net_rebatch(net, 4, &err);
  sn_route *known = sn_route_new(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, &err);
  assert_true(turned && known);
  assert_null(sn_route_resize(known, turned, &err));
  assert_int_equal(err.code, SN_OK);
  sn_route_free(known);
  sn_net_free(turned);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_network),     cmocka_unit_test(adapters_and_files), cmocka_unit_test(recordings),
      cmocka_unit_test(what_is_too_large), cmocka_unit_test(what_is_made_anew),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
