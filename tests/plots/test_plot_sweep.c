/* Tests of the picture of a sweep: which points it takes, and what its script says (limit, gaps, axes, users' names).
 * That gnuplot draws it is tested by tests/cli/systems/sweep.test. */
#include "plots/plot_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 40 };

typedef struct sample {
  sn_sweep_row rows[MOST];
  const sn_sweep_row *list[MOST];
  sn__sweep_chart chart;
} sample;

/* Two strategies for each batch; the first needs `gib` GiB an image, the second half of that. 8 GiB of memory. */
static void fill(sample *s, const uint32_t *batches, uint32_t count, double gib) {
  *s = (sample){
      .chart = {.x = SN_PLOT_X_BATCH, .form = SN__FORM_SVG, .n_curves = 2, .curves = {"baseline", "liveness"}}};
  for (uint32_t i = 0; i < 2 * count; i++) {
    double need = gib * batches[i / 2] / (1 + i % 2);
    s->rows[i] = (sn_sweep_row){.net = "it's a net",
                                .net_name = "",
                                .gpu = "k40c",
                                .memory_bytes = UINT64_C(8) << 30,
                                .conditions = sn_conditions_of(&(const sn_options)SN_OPTIONS_INIT, NULL),
                                .placement = "packed",
                                .batch = batches[i / 2],
                                .strategy = s->chart.curves[i % 2],
                                .failure = "",
                                .fits = need <= 8,
                                .peak_device_bytes = (uint64_t)(need * 1073741824.0),
                                .images_per_second = 100 + i};
    s->list[i] = &s->rows[i];
  }
  s->chart.rows = s->list;
  s->chart.n_rows = 2 * count;
}

static char *script_of(const sample *s) {
  char *text = calloc(1, 1 << 16);
  FILE *out = fmemopen(text, (1 << 16) - 1, "w");
  assert_non_null(out);
  sn__sweep_script_write(out, &s->chart);
  assert_int_equal(fclose(out), 0);
  return text;
}

static void assert_says(const char *script, const char *words) {
  if (!strstr(script, words)) fail_msg("no \"%s\" in:\n%s", words, script);
}

static void assert_silent(const char *script, const char *words) {
  if (strstr(script, words)) fail_msg("\"%s\" in:\n%s", words, script);
}

static void curves_and_limit(void **unused) {
  (void)unused;
  sample s;
  fill(&s, (const uint32_t[]){4, 6, 8, 10}, 4, 1);
  char *script = script_of(&s);
  assert_says(script, "$s0 << END\n4 4 100\n6 6 102\n8 8 104\n10 10 NaN\nEND\n"); /* 10 GiB do not fit */
  assert_says(script, "$s1 << END\n4 2 101\n6 3 103\n8 4 105\n10 5 107\nEND\n");
  assert_says(script, ", 8 with lines");
  assert_says(script, "title ' memory of k40c: 8.00 GiB'");
  assert_says(script, "set title 'device memory (GiB)'");
  assert_says(script, "it''s a net on k40c");
  assert_says(script, "set xtics (4, 6, 8, 10)");
  assert_says(script, "set yrange [0:10.5]");
  assert_silent(script, "logscale");
  free(script);
}

static void a_limit_far_off_is_only_named(void **unused) {
  (void)unused;
  sample s;
  fill(&s, (const uint32_t[]){1, 2, 3}, 3, 0.1);
  char *script = script_of(&s);
  assert_says(script, "8192 MiB, far above'");
  assert_says(script, "set yrange [0:322.56]"); /* 0.3 GiB and 5 % */
  assert_silent(script, "8192 with lines");
  free(script);
}

static void what_misses_by_far_does_not_flatten_the_rest(void **unused) {
  (void)unused;
  sample s;
  fill(&s, (const uint32_t[]){1, 2, 4, 8, 16, 32, 64, 128}, 8, 1);
  char *script = script_of(&s);
  assert_says(script, "set yrange [0:16.8]"); /* twice the memory, of 128 GiB */
  assert_says(script, "set logscale x 2");
  assert_silent(script, "set xtics (");
  free(script);
}

static void one_batch_is_a_picture_too(void **unused) {
  (void)unused;
  sample s;
  fill(&s, (const uint32_t[]){10}, 1, 3); /* and nothing fits */
  char *script = script_of(&s);
  assert_says(script, "set xrange [5:15]");
  assert_says(script, "set xtics (10)");
  assert_says(script, "NaN");
  free(script);
}

static void map_says_what_fits_and_how_fast(void **unused) {
  (void)unused;
  sample s;
  fill(&s, (const uint32_t[]){4, 6, 8, 10}, 4, 1); /* of the first strategy 10 GiB do not fit */
  char *text = NULL;
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  s.chart.columns = 80;
  sn__sweep_map_text(out, &s.chart);
  fclose(out);
  assert_says(text, "largest batch that fits: 10, with ");
  assert_says(text, "fastest: 107 images/s, batch 10 with ");
  assert_says(text, "    100    102    104     no\n");
  assert_says(text, "    101    103    105    107\n");
  free(text);
  for (uint32_t i = 0; i < s.chart.n_rows; i++) { /* both strategies come to the same */
    sn_sweep_row *row = (sn_sweep_row *)(uintptr_t)s.chart.rows[i];
    row->fits = true;
    row->images_per_second = row->batch;
    row->peak_device_bytes = row->batch;
  }
  out = open_memstream(&text, &bytes);
  sn__sweep_map_text(out, &s.chart);
  fclose(out);
  assert_says(text, "\n= ");
  free(text);
}

/* The limits of the pools are the line, and a pool of all stands to their right without one. */
static void over_pools_the_limit_is_theirs(void **unused) {
  (void)unused;
  sample s;
  fill(&s, (const uint32_t[]){4, 4, 4}, 3, 1);
  s.chart.x = SN_PLOT_X_POOL;
  for (uint32_t i = 0; i < 6; i++) {
    s.rows[i].conditions.pool_limit_bytes = i < 4 ? (uint64_t)(i / 2 + 1) << 31 : 0;
    s.rows[i].pool_bytes = UINT64_C(3) << 30;
  }
  char *script = script_of(&s);
  assert_says(script, "$s0 << END\n2 3 100\n4 3 102\n4.3 3 104\nEND\n");
  assert_says(script, "$limit << END\n2 2\n4 4\nEND\n");
  assert_says(script, "$limit using 1:2 with lines");
  assert_says(script, "title ' limit of the pool'");
  assert_says(script, "set title 'pool (GiB)'");
  assert_says(script, "on k40c, batch 4, ");
  assert_says(script, "set xtics ('2' 2, '4' 4, 'all' 4.3)");
  free(script);
}

static void over_memory_and_gpus_the_limit_is_each_ones(void **unused) {
  (void)unused;
  sample s;
  fill(&s, (const uint32_t[]){4, 4}, 2, 1);
  for (uint32_t i = 2; i < 4; i++) s.rows[i].memory_bytes = UINT64_C(3) << 30;
  s.chart.x = SN_PLOT_X_MEMORY;
  char *script = script_of(&s);
  assert_says(script, "$limit << END\n8 8\n3 3\nEND\n");
  assert_says(script, "set xlabel 'usable memory of the GPU (GiB)'");
  free(script);
  for (uint32_t i = 2; i < 4; i++) s.rows[i].gpu = "t4";
  s.chart.x = SN_PLOT_X_GPU;
  s.chart.gpus[0] = "k40c";
  s.chart.gpus[1] = "t4";
  s.chart.n_gpus = 2;
  script = script_of(&s);
  assert_says(script, "$limit << END\n1 8\n2 3\nEND\n");
  assert_says(script, "set xtics ('k40c' 1, 't4' 2)");
  assert_says(script, "with points ");
  assert_silent(script, "on k40c");
  free(script);
}

/* GiB of each mesh as many as it has images: one GPU begins what has one axis. */
static void schemes_over_the_number_of_gpus(void **unused) {
  (void)unused;
  static const char *const meshes[] = {"", "fsdp=2", "fsdp=4", "tp=2", "tp=2,fsdp=2", "tp=2,fsdp=4,prefetch=2"};
  sample s;
  char scheme[SN_MESH_TEXT];
  fill(&s, (const uint32_t[]){1, 2, 3}, 3, 1);
  for (uint32_t i = 0; i < 6; i++) {
    s.rows[i].conditions.parallel = meshes[i];
    s.rows[i].peak_device_bytes = UINT64_C(1) << (30 + i);
    s.rows[i].fits = i < 4;
  }
  s.chart.x = SN_PLOT_X_WORLD;
  s.chart.n_curves = 0;
  sn__sweep_add_schemes(&s.chart, s.list, 6);
  assert_int_equal(s.chart.n_curves, 4);
  assert_string_equal(sn__sweep_scheme(&s.chart, 2, scheme), "tp=2,fsdp");
  assert_string_equal(sn__sweep_scheme(&s.chart, 3, scheme), "tp=2,fsdp,prefetch=2");
  char *script = script_of(&s);
  assert_says(script, "$s0 << END\n1 1 100\n2 2 101\n4 4 102\nEND\n");
  assert_says(script, "$s1 << END\n1 1 100\n2 8 103\nEND\n");
  assert_says(script, "$s2 << END\n4 16 NaN\nEND\n"); /* which does not begin with one GPU */
  assert_says(script, "$s3 << END\n8 32 NaN\nEND\n");
  assert_says(script, "set logscale y 2\nset yrange [0.769230769:41.6]"); /* all of it, the limit of 8 GiB too */
  assert_says(script, ", 8 with lines");
  assert_says(script, "set xlabel 'GPUs'");
  free(script);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(curves_and_limit),
      cmocka_unit_test(a_limit_far_off_is_only_named),
      cmocka_unit_test(what_misses_by_far_does_not_flatten_the_rest),
      cmocka_unit_test(one_batch_is_a_picture_too),
      cmocka_unit_test(over_pools_the_limit_is_theirs),
      cmocka_unit_test(over_memory_and_gpus_the_limit_is_each_ones),
      cmocka_unit_test(schemes_over_the_number_of_gpus),
      cmocka_unit_test(map_says_what_fits_and_how_fast),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
