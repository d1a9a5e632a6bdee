/* Single operations on a Xeon Phi 7250, of "Runtime Concurrency Control and Operation Scheduling for High Performance
 * Neural Network Training": its tables II and III.
 *
 * The paper does not give the kernels of the convolutions in table II, so that nothing can be said of them from their
 * shapes. Every row is fitted by itself, a + w/p + c p through its time, its count of threads and, where a would not be
 * negative, its loss with 68; table III's co-runs then follow from two of these rows and the profile's slowing. */
#include "cli/reproduce/reproduce.h"

#include "sim/device/device.h"
#include "sim/device/pace.h"

#include <math.h>
#include <stdio.h>

enum { ROWS = 9, LARGEST_FILTER = 2, LARGEST_DATA = 5, HALF = 34 };

/* "Time (s)" of a thousand runs: ms of one. */
static const struct {
  const char *op, *input;
  double ms, loss_percent;
  uint32_t threads;
} rows_of_table2[ROWS] = {
    {"FILTER", "(32,8,8,384)", 7.2, 17.3, 26},   {"FILTER", "(32,17,17,384)", 11.1, 10.2, 42},
    {"FILTER", "(32,8,8,2048)", 20.3, 0, 68},    {"DATA", "(32,8,8,384)", 5.8, 9.8, 36},
    {"DATA", "(32,17,17,384)", 8.7, 2.3, 56},    {"DATA", "(32,8,8,2048)", 19.6, 0, 68},
    {"forward", "(32,8,8,384)", 4.7, 11.1, 45},  {"forward", "(32,17,17,384)", 7.4, 3.5, 63},
    {"forward", "(32,8,8,2048)", 14.8, 2.0, 66},
};

/* T(p) = a + w/p + c p is the least, t, at n threads: w = c n^2, a = t - 2 c n. With all C it is t + c (C - n)^2 / C.
 */
static sn_scaling fit(int row, uint32_t cores) {
  double t = rows_of_table2[row].ms * 1e6, n = rows_of_table2[row].threads, all = cores;
  double far = (all - n) * (all - n) / all, most = t / (2 * n);
  double c = far > 0 ? fmin(most, t * rows_of_table2[row].loss_percent / 100 / far) : most;
  return (sn_scaling){.fixed = t - 2 * c * n, .parallel = c * n * n, .thread = c, .cap = INFINITY};
}

static uint32_t fastest(const sn_cores *cores, const sn_scaling *law) {
  uint32_t best = 1;
  for (uint32_t p = 2; p <= cores->count; p++)
    if (sn_scaling_ns(cores, law, p) < sn_scaling_ns(cores, law, best)) best = p;
  return best;
}

sn_status sn_corun_table2(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err) {
  sn_device device;
  if (sn_device_load(experiment->gpu, &device, err) != SN_OK) return err->code;
  for (int i = 0; i < ROWS; i++) {
    char subject[SN_PAPER_TEXT];
    sn_scaling law = fit(i, device.cores.count);
    uint32_t best = fastest(&device.cores, &law);
    double ns = (double)sn_scaling_ns(&device.cores, &law, best);
    double all = (double)sn_scaling_ns(&device.cores, &law, device.cores.count);
    snprintf(subject, sizeof subject, "%s %s", rows_of_table2[i].op, rows_of_table2[i].input);
    sn_paper_put(rows, subject, "best threads", SN_THREADS, rows_of_table2[i].threads, best, err);
    sn_paper_put(rows, subject, "time with these", SN_MS, rows_of_table2[i].ms, ns / 1e6, err);
    sn_paper_put(rows, subject, "loss of all 68", SN_SHARE_PERCENT, rows_of_table2[i].loss_percent,
                 100 * (all / ns - 1), err);
  }
  return err->code;
}

/* Both at once, from their start to the end of the later one. */
static double together_ms(const sn_cores *cores, const sn_scaling laws[2], const sn_team teams[2]) {
  sn_pace pace = {.cores = cores};
  uint32_t lane;
  int64_t end = 0;
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t share = sn_scaling_share(cores, &laws[i], teams[i].count);
    sn_pace_start(&pace, i, (sn_running){teams[i], share}, sn_scaling_ns(cores, &laws[i], teams[i].count));
  }
  while (sn_pace_next(&pace, &lane, &end)) {
    sn_pace_advance(&pace, end);
    sn_pace_end(&pace, lane);
  }
  return (double)end / 1e6;
}

static double alone_ms(const sn_cores *cores, const sn_scaling *law, uint32_t threads) {
  return (double)sn_scaling_ns(cores, law, threads) / 1e6;
}

sn_status sn_corun_table3(const sn_experiment *experiment, sn_paper_rows *rows, sn_err *err) {
  static const double paper_serial = 41.1, paper_doubled = 39.9, paper_halves = 29.8;
  static const double paper_slower[2] = {25, 17};
  static const char subject[] = "FILTER and DATA (32,8,8,2048)";
  sn_device device;
  if (sn_device_load(experiment->gpu, &device, err) != SN_OK) return err->code;
  const sn_cores *cores = &device.cores;
  uint16_t all = (uint16_t)cores->count;
  const sn_scaling laws[2] = {fit(LARGEST_FILTER, all), fit(LARGEST_DATA, all)};
  const sn_team doubled[2] = {{0, all, SN_SLOT_FIRST}, {0, all, SN_SLOT_SECOND}};
  const sn_team halves[2] = {{0, HALF, SN_SLOT_FIRST}, {HALF, HALF, SN_SLOT_FIRST}};
  double serial = alone_ms(cores, &laws[0], all) + alone_ms(cores, &laws[1], all);
  double on_top = together_ms(cores, laws, doubled), beside = together_ms(cores, laws, halves);
  sn_paper_put(rows, subject, "one after another, 68", SN_MS, paper_serial, serial, err);
  sn_paper_put(rows, subject, "two threads a core, 68+68", SN_MS, paper_doubled, on_top, err);
  sn_paper_put(rows, subject, "side by side, 34+34", SN_MS, paper_halves, beside, err);
  sn_paper_put(rows, "gain over one after another", "68+68", SN_RATIO, paper_serial / paper_doubled, serial / on_top,
               err);
  sn_paper_put(rows, "gain over one after another", "34+34", SN_RATIO, paper_serial / paper_halves, serial / beside,
               err);
  for (int i = 0; i < 2; i++)
    sn_paper_put(rows, "34 threads alone, slower by", i ? "DATA" : "FILTER", SN_SHARE_PERCENT, paper_slower[i],
                 100 * (alone_ms(cores, &laws[i], HALF) / alone_ms(cores, &laws[i], all) - 1), err);
  return err->code;
}
