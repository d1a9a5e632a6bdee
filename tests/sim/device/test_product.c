/* Products of matrices, and layer norms' sums over rows, by hand. */
#include "tests/support/pipeline.h"

#include "sim/device/conv.h"
#include "sim/device/device_internal.h"
#include "sim/device/product.h"

#include <math.h>

static sn_device ideal(const char *name) {
  sn_device d = load_gpu(name);
  d.memory_efficiency = 1;
  d.launch_ns = 0;
  return d;
}

static bool is_about(double a, double b) {
  return fabs(a - b) <= 1e-9 * fabs(b);
}

/* Tiles of 64 by 64 and steps of 32 are filled up; sides that are no multiples of 8 take twice as long, also where
 * bytes bound the product, but for what is of a batch. Without tensor cores, and of four bytes, neither. */
static void products_by_hand(void **state) {
  (void)state;
  const sn_device d = ideal("rtx3090");
  const sn_arithmetic how = sn_device_arithmetic(&d, SN_FP16, true, 2),
                      lanes = sn_device_arithmetic(&d, SN_FP32, true, 4);
  const double rate = how.flops * how.share, bytes = 1e9;
  assert_true(
      is_about(sn_product_seconds(&d, &how, &(sn_product){.rows = 128, .columns = 192, .terms = 64, .count = 10}, 0),
               2.0 * 128 * 192 * 64 * 10 / rate));
  assert_true(
      is_about(sn_product_seconds(&d, &how, &(sn_product){.rows = 72, .columns = 72, .terms = 40, .count = 1}, 0),
               2.0 * 128 * 128 * 64 / rate));
  assert_true(
      is_about(sn_product_seconds(&d, &how, &(sn_product){.rows = 49, .columns = 64, .terms = 32, .count = 1}, 0),
               2 * 2.0 * 64 * 64 * 32 / rate));
  assert_true(
      is_about(sn_product_seconds(&d, &how, &(sn_product){.rows = 64, .columns = 64, .terms = 49, .count = 1}, bytes),
               2 * bytes / d.memory_bandwidth));
  sn_product of_batch = {.rows = 49, .columns = 64, .terms = 32, .count = 1, .rows_of_batch = true};
  assert_true(is_about(sn_product_seconds(&d, &how, &of_batch, 0), 2.0 * 64 * 64 * 32 / rate));
  of_batch = (sn_product){.rows = 64, .columns = 64, .terms = 49, .count = 1, .terms_of_batch = true};
  assert_true(is_about(sn_product_seconds(&d, &how, &of_batch, bytes), bytes / d.memory_bandwidth));
  assert_true(
      is_about(sn_product_seconds(&d, &lanes, &(sn_product){.rows = 49, .columns = 49, .terms = 32, .count = 1}, 0),
               2.0 * 49 * 49 * 32 / (lanes.flops * lanes.share)));
}

/* A block for each 32 columns, of 25 GB/s, until they fill the bandwidth. */
static void columns_by_hand(void **state) {
  (void)state;
  const sn_device d = ideal("rtx3090");
  assert_true(is_about(sn_columns_seconds(&d, 1e9, 96, 4), 1e9 / 75e9));
  assert_true(is_about(sn_columns_seconds(&d, 1e9, 97, 4), 1e9 / 100e9));
  assert_true(is_about(sn_columns_seconds(&d, 1e9, 96, 2), 1e9 / 37.5e9));
  assert_true(is_about(sn_columns_seconds(&d, 1e9, 4096, 4), 1e9 / d.memory_bandwidth));
}

/* A block for each channel, in training: 16 of 12.5 GB/s of two bytes, 64 of 25 of four; many channels, and inference,
 * have the bandwidth, of two bytes a part of it. */
static void channels_by_hand(void **state) {
  (void)state;
  sn_device d = ideal("rtx3090");
  d.norm_efficiency = 0.7;
  assert_int_equal(sn__norm_ns(&d, 1e9, 2, 1, 16), 5000000);
  d.memory_bandwidth = 1e15;
  assert_int_equal(sn__norm_ns(&d, 1e9, 4, 1, 64), 625000);
  d.memory_bandwidth = 1e12;
  assert_int_equal(sn__norm_ns(&d, 7e8, 2, 1, 64), 1000000);
  assert_int_equal(sn__norm_ns(&d, 7e8, 2, 1, 0), 1000000);
  assert_int_equal(sn__norm_ns(&d, 1e9, 4, 1, 64), 1000000);
}

/* A part's last wave loses more than the whole's by what tiles there are; as many tiles lose as much, and fewer than a
 * wave no more than one. A filter's gradient loses nothing. */
static void parts_by_hand(void **state) {
  (void)state;
  const sn_device d = ideal("rtx3090");
  const sn_arithmetic how = sn_device_arithmetic(&d, SN_FP16, true, 2);
  sn_product p = {.rows = 6400, .columns = 640, .terms = 64, .count = 1};
  const double whole = sn_product_seconds(&d, &how, &p, 0), lost = sn_last_wave_tiles(&d);
  assert_true(is_about(lost, 2 * d.multiprocessors));
  p.tiles = 1000;
  assert_true(is_about(sn_product_seconds(&d, &how, &p, 0), whole));
  p.tiles = 8000;
  assert_true(is_about(sn_product_seconds(&d, &how, &p, 0), whole * (1 + lost / 1000) / (1 + lost / 8000)));
  p.terms_of_batch = true;
  assert_true(is_about(sn_product_seconds(&d, &how, &p, 0), whole));
  p = (sn_product){.rows = 640, .columns = 640, .terms = 64, .count = 100, .tiles = 80000};
  double more = (1 + lost / 10000) / (1 + lost / 80000);
  double many = sn_product_seconds(&d, &how, &p, 0) / more;
  p.count = 1;
  p.tiles = 800;
  assert_true(is_about(sn_product_seconds(&d, &how, &p, 0), many / 100 * 1.5 / (1 + lost / 800)));
}

static const sn_layer *layer_of(const sn_net *net, sn_op op) {
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (net->layers[i].op == op) return &net->layers[i];
  fail_msg("no such layer");
  return NULL;
}

/* A rank's have its share of the multiply-adds, and the tiles of the whole. */
static void ranks_products(void **state) {
  (void)state;
  sn_net *net = load_net("swin_t", 4);
  static const sn_division splits[] = {SN_BY_OUTPUTS, SN_BY_INPUTS};
  for (int i = 0; i < 3; i++) {
    const sn_layer *layer = layer_of(net, i < 2 ? SN_FC : SN_ATTENTION);
    for (sn_pass pass = SN_FORWARD; pass <= SN_BACKWARD; pass++) {
      sn_product p[SN_MOST_PRODUCTS], all[SN_MOST_PRODUCTS];
      double bytes = 1e15, macs = 0;
      uint32_t count = sn_products_of(layer, pass, (sn_product_part){0}, &bytes, all);
      const sn_product_part part = {3, i < 2 ? splits[i] : SN_UNDIVIDED};
      assert_int_equal(sn_products_of(layer, pass, part, &bytes, p), count);
      for (uint32_t k = 0; k < count; k++) {
        macs += p[k].rows * p[k].columns * p[k].terms * p[k].count;
        assert_true(p[k].tiles == ceil(all[k].rows / 64) * ceil(all[k].columns / 64) * all[k].count);
        assert_true(i < 2 ? p[k].count == 1 : is_about(3 * p[k].count, all[k].count));
      }
      assert_true(is_about(3 * macs, (double)layer->macs * (pass == SN_FORWARD ? 1 : 2)));
      if (i < 2 && pass == SN_FORWARD) assert_true(is_about(i == 0 ? 3 * p->columns : p->columns, all->columns));
    }
  }
  sn_net_free(net);
}

/* Of a network by name: an FC is one product forward and two backward, attention in parts two and four; together they
 * have the layer's multiply-adds. */
static void layers_products(void **state) {
  (void)state;
  sn_net *net = load_net("swin_t", 4);
  static const struct {
    sn_op op;
    uint32_t forward;
  } layers[] = {{SN_FC, 1}, {SN_ATTENTION, 2}};
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
    const sn_layer *layer = layer_of(net, layers[i].op);
    for (sn_pass pass = SN_FORWARD; pass <= SN_BACKWARD; pass++) {
      sn_product p[SN_MOST_PRODUCTS];
      double bytes = 1e15, macs = 0;
      uint32_t count = sn_products_of(layer, pass, (sn_product_part){0}, &bytes, p);
      assert_int_equal(count, pass == SN_FORWARD ? layers[i].forward : 2 * layers[i].forward);
      for (uint32_t k = 0; k < count; k++) macs += p[k].rows * p[k].columns * p[k].terms * p[k].count;
      assert_true(is_about(macs, (double)layer->macs * (pass == SN_FORWARD ? 1 : 2)));
      assert_true(layers[i].op == SN_FC ? bytes == 1e15 : bytes < 1e15);
    }
  }
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products_by_hand), cmocka_unit_test(columns_by_hand),
                                     cmocka_unit_test(channels_by_hand), cmocka_unit_test(layers_products),
                                     cmocka_unit_test(parts_by_hand),    cmocka_unit_test(ranks_products)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
