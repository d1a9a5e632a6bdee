/* CPU kernels of what is done to sequences, in many shapes, against the reference kernels: tables, positions, attention
 * of all positions and within windows. */
#include "tests/exec/kernel/check_kernels.h"

static void check_attention(sn_attr attr, uint32_t batch, uint32_t positions, uint32_t d) {
  for (uint32_t packed = 0; packed < 2; packed++)
    for (uint32_t threads = 1; threads <= 2; threads++)
      check_net(attention_net(attr, batch, positions, d, packed), threads, 11 + threads, UINT64_MAX, false);
}

static void sequences_match(void **state) {
  (void)state;
  for (uint32_t threads = 1; threads <= 2; threads++) {
    check_net(tokens_net(3, 70, 40, 33, 70), threads, 3, UINT64_MAX, false);
    check_net(tokens_net(2, 300, 1000, 64, 2), threads, 4, UINT64_MAX, false);
  }
  check_operator(SN_TOKEN, (sn_attr){0}, (sn_shape){3, 40, 14, 14}, 1);
  check_operator(SN_TOKEN, (sn_attr){0}, (sn_shape){1, 1, 1, 1}, 1);
  check_operator(SN_TAKE, (sn_attr){0}, (sn_shape){3, 40, 17, 1}, 1);
  check_operator(SN_POSITION, (sn_attr){.rows = 700}, (sn_shape){2, 24, 700, 1}, 1);
  check_operator(SN_ROTARY, (sn_attr){.heads = 4}, (sn_shape){2, 32, 600, 1}, 1);
  check_attention((sn_attr){.heads = 3, .kv_heads = 3}, 2, 37, 16);
  check_attention((sn_attr){.heads = 4, .kv_heads = 2, .causal = true}, 3, 50, 8);
  check_attention((sn_attr){.heads = 4, .kv_heads = 1, .parts = true, .ratio = 0.1}, 2, 33, 5);
  check_attention((sn_attr){.heads = 1, .kv_heads = 1, .causal = true, .ratio = 0.5}, 1, 1, 2);
  check_attention((sn_attr){.heads = 4, .kv_heads = 2, .causal = true, .parts = true, .cap = 0.3}, 2, 50, 8);
  check_attention((sn_attr){.heads = 2, .kv_heads = 1, .parts = true, .cap = 2, .rows = 8}, 2, 33, 5);
}

static void distances_match(void **state) {
  (void)state;
  static const uint32_t rows[] = {1, 2, 3, 7, 32, 300};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    check_attention((sn_attr){.heads = 3, .kv_heads = 3, .rows = rows[i]}, 2, 37, 8);
    check_attention((sn_attr){.heads = 4, .kv_heads = 2, .rows = rows[i], .causal = true, .ratio = 0.2}, 3, 50, 4);
  }
  check_attention((sn_attr){.heads = 2, .kv_heads = 2, .rows = 32}, 1, 600, 3); /* beyond the last bucket */
  check_attention((sn_attr){.heads = 1, .kv_heads = 1, .rows = 8, .parts = true}, 1, 1, 2);
}

static void check_windows(sn_attr attr, sn_shape data, uint32_t d) {
  for (uint32_t i = 0; i < 8; i++) {
    sn_attr a = attr;
    a.rows = i & 1 ? (2 * a.window - 1) * (2 * a.window - 1) : 0;
    check_net(image_attention_net(a, data, d, i & 2), i & 4 ? 2 : 1, 21 + i, UINT64_MAX, false);
  }
}

static void windows_match(void **state) {
  (void)state;
  for (uint32_t shift = 0; shift < 7; shift += 3)
    check_windows((sn_attr){.heads = 3, .kv_heads = 3, .window = 7, .shift = shift}, (sn_shape){2, 6, 14, 21}, 8);
  check_windows((sn_attr){.heads = 4, .kv_heads = 2, .window = 4, .shift = 1, .ratio = 0.3}, (sn_shape){3, 5, 12, 4},
                3);
  check_windows((sn_attr){.heads = 2, .kv_heads = 1, .window = 3, .shift = 2, .causal = true}, (sn_shape){2, 5, 3, 6},
                4);
  check_windows((sn_attr){.heads = 1, .kv_heads = 1, .window = 5, .parts = true}, (sn_shape){1, 3, 5, 5}, 2);
  check_windows((sn_attr){.heads = 2, .kv_heads = 2, .window = 1}, (sn_shape){2, 3, 4, 3}, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sequences_match),
      cmocka_unit_test(distances_match),
      cmocka_unit_test(windows_match),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
