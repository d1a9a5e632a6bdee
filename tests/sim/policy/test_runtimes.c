/* Pictures of several runtimes: each has its passes, its room and its kinds of tensors. */
#include "plots/plot_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_words(const char *script, const char *const *words, unsigned count) {
  for (unsigned i = 0; i < count; i++)
    if (!strstr(script, words[i])) fail_msg("no \"%s\" in\n%s", words[i], script);
}

/* Two forwards, four backwards and two updates of one runtime beside two and two of another: each pass has its place,
 * and each runtime its room, that of PyTorch without what its allocator has reserved beside the tensors. */
static void runtimes_have_their_own_room_and_passes(void **state) {
  (void)state;
  static const char *const passes[] = {"forward",  "forward",  "backward", "backward",
                                       "backward", "backward", "update",   "update"};
  sn_step_row pytorch[8], paper[4];
  for (uint32_t i = 0; i < 8; i++)
    pytorch[i] = (sn_step_row){.step = i + 1,
                               .layer = "encoder.layers.11.mlp.3",
                               .op = "FC",
                               .pass = passes[i],
                               .tensor_bytes = (8 - i) << 20};
  for (uint32_t i = 0; i < 4; i++)
    paper[i] = (sn_step_row){.step = i + 1, .layer = "fc1", .op = "FC", .pass = passes[i], .tensor_bytes = 10 << 20};
  sn_result results[] = {{.strategy = "baseline",
                          .source = "sim",
                          .dialect = "superneurons",
                          .context_bytes = 3 << 20,
                          .steps = paper,
                          .n_steps = 4},
                         {.strategy = "pytorch",
                          .source = "sim",
                          .dialect = "pytorch",
                          .context_bytes = 3 << 20,
                          .reserved_bytes = 10 << 20,
                          .peak_tensor_bytes = 8 << 20,
                          .peak_device_bytes = 13 << 20,
                          .least_device_bytes = 12 << 20,
                          .steps = pytorch,
                          .n_steps = 8}};
  sn_run run = {.conditions = sn_conditions_of(&(const sn_options)SN_OPTIONS_INIT, NULL),
                .net = "mine",
                .net_name = "mine",
                .gpu = "k40c",
                .device = "",
                .created = "",
                .memory_bytes = 12 << 20,
                .results = results,
                .n_results = 2};
  static const char *const words[] = {"set xrange [0:108]\n",
                                      "to first 50,",
                                      "to first 100,",
                                      "'update' at first 104,",
                                      "room in superneurons on k40c: 9 MiB",
                                      "room in pytorch on k40c: 8 MiB",
                                      "$s1 << END\n12.5 8",
                                      "\n56.25 6",
                                      "\n102 2",
                                      "...ers.11.mlp.3 fwd",
                                      "$s0 << END\n12.5 10"};
  const sn__curve curves[] = {{&run, &results[0]}, {&run, &results[1]}};
  const sn__chart chart = {.kind = SN_PLOT_STEPS, .form = SN__FORM_SVG, .curves = curves, .n_curves = 2, .n_runs = 1};
  char *script = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&script, &size);
  sn__curves_write(out, &chart);
  fclose(out);
  assert_words(script, words, sizeof words / sizeof *words);
  free(script);
}

/* What is saved for the backward pass is no gradient, gradients of parameters are their own, and what is held into the
 * update ends with the map. */
static void pool_tells_kinds_apart(void **state) {
  (void)state;
  static const sn_timeline_step steps[] = {{.layer = "pool1", .op = "POOL", .pass = "forward"},
                                           {.layer = "fc1", .op = "FC", .pass = "update"}};
  static const sn_timeline_column columns[] = {{0, 1, 0}, {1, 1, 1}};
  static const sn_timeline_tensor tensors[] = {{"pool1.saved", "pool1", "saved", 1 << 20},
                                               {"fc1.dw", "fc1", "parameter gradient", 1 << 20}};
  static const sn_rect rects[] = {{.tensor = 0, .to_instr = 1, .bytes = 1 << 20},
                                  {.tensor = 1, .to_instr = 2, .offset = 1 << 20, .bytes = 1 << 20}};
  static const double places[] = {1, 2, 3};
  sn_timeline t = {.n_instrs = 2,
                   .n_steps = 2,
                   .n_forward = 1,
                   .n_trained = 1,
                   .n_tensors = 2,
                   .n_rects = 2,
                   .n_columns = 2,
                   .n_shown_columns = 1,
                   .steps = steps,
                   .columns = columns,
                   .tensors = tensors,
                   .rects = rects,
                   .places = places,
                   .pool_bytes = 2 << 20};
  sn_result result = {.strategy = "pytorch", .pool_cause = "", .source = "sim"};
  sn_run run = {.conditions = sn_conditions_of(&(const sn_options)SN_OPTIONS_INIT, NULL),
                .net = "mine",
                .net_name = "mine",
                .gpu = "k40c",
                .device = "",
                .created = ""};
  sn__curve curve = {&run, &result};
  sn__chart chart = {
      .kind = SN_PLOT_POOL, .form = SN__FORM_SVG, .curves = &curve, .n_curves = 1, .n_runs = 1, .timeline = &t};
  static const char *const words[] = {"$k1 << END\n0 0 0 0\n1 2 0 1\n", "$k2 << END\n0 0 0 0\nEND",
                                      "$k3 << END\n0 0 0 0\n1 2 1 2\n", "title 'saved for backward'",
                                      "title 'gradients of parameters'"};
  char *script = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&script, &size);
  sn__pool_write(out, &chart);
  fclose(out);
  assert_words(script, words, sizeof words / sizeof *words);
  assert_null(strstr(script, "scratch"));
  free(script);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runtimes_have_their_own_room_and_passes),
      cmocka_unit_test(pool_tells_kinds_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
