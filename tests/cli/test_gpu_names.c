/* The GPU that is meant: by the names that people and drivers give it, and where nobody gives one. */
#include "cli/options/gpu.h"
#include "sim/device/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void names_of_people(void **state) {
  static const char *const called[][2] = {
      {"rtx4090", "rtx4090"},
      {"RTX 4090", "rtx4090"},
      {"4090", "rtx4090"},
      {"NVIDIA GeForce RTX 4090", "rtx4090"},
      {"geforce-rtx-3090", "rtx3090"},
      {"1080ti", "gtx1080ti"},
      {"a100", "a100_80"},
      {"A100-40GB", "a100_40"},
      {"NVIDIA A100-SXM4-80GB", "a100_80"},
      {"a100-pcie-40gb", "a100_40"},
      {"h100", "h100_sxm"},
      {"NVIDIA H100 80GB HBM3", "h100_sxm"},
      {"NVIDIA H100 PCIe", "h100_pcie"},
      {"Tesla V100-SXM2-16GB", "v100_16"},
      {"v100-32gb", "v100_32"},
      {"Tesla T4", "t4"},
      {"Tesla K40c", "k40c"},
      {"k40", "k40c"},
      {"Tesla P100-PCIE-16GB", "p100_16"},
      {"NVIDIA RTX A6000", "a6000"},
      {"NVIDIA A10G", "a10g"},
      {"NVIDIA TITAN V", "titan_v"},
      {"GeForce GTX TITAN X", "titan_x_maxwell"},
      {"NVIDIA GeForce GTX 1060 6GB", "gtx1060_6"},
      {"NVIDIA GeForce RTX 4060 Laptop GPU", "rtx4060_laptop"},
      {"AMD Instinct MI300X", "mi300x"},
      {"jetson orin", "orin_agx_64"},
      {"colab", "t4"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof called / sizeof called[0]; i++) {
    const char *name = sn_device_called(called[i][0]);
    if (!name || strcmp(name, called[i][1]) != 0)
      fail_msg("\"%s\" is %s, not %s", called[i][0], name ? name : "unknown", called[i][1]);
  }
}

/* Every profile is called by its own name, whatever it is reduced to. */
static void own_names(void **state) {
  sn_err err = SN_ERR_INIT;
  sn_device device;
  (void)state;
  for (uint32_t i = 0; i < sn_device_count(); i++) {
    assert_int_equal(sn_device_known(i, &device, &err), SN_OK);
    assert_string_equal(sn_device_called(device.name), device.name);
  }
}

/* Cards that share a number with a known one and are another. */
static void other_cards(void **state) {
  static const char *const unknown[] = {"",
                                        "rtx",
                                        "NVIDIA GeForce RTX 3060 Laptop GPU",
                                        "RTX 3080 Ti",
                                        "a1000",
                                        "gpu",
                                        "NVIDIA RTX 6000 Ada Generation",
                                        "a very long name that no GPU will ever have, whatever happens to it"};
  (void)state;
  for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) assert_null(sn_device_called(unknown[i]));
}

/* A card that is not known: its neighbour of the same number, however it is written. */
static void unknown_cards_have_neighbours(void **state) {
  static const char *const near[][2] = {{"RTX 3090 Ti", "rtx3090"},
                                        {"NVIDIA GeForce RTX 3080 Ti", "rtx3080"},
                                        {"4070ti", "rtx4070"},
                                        {"RTX 3060 12GB", "rtx3060"},
                                        {"A10", "a10g"},
                                        {"rtx 4060", "rtx4060_laptop"},
                                        {"1080", "gtx1080ti"},
                                        {"H100 NVL", "h100"},
                                        {"rtxx4090", "rtx4090"},
                                        {"4080 super", "rtx4080"}};
  (void)state;
  for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
    char said[64], expected[64];
    assert_null(sn_device_called(near[i][0]));
    snprintf(expected, sizeof expected, " (did you mean \"%s\"?)", near[i][1]);
    assert_string_equal(sn_device_suggest(near[i][0], said, sizeof said), expected);
  }
}

static void check_meant(const char *name, const char *why) {
  const sn_gpu_meant meant = sn_gpu_unnamed();
  assert_string_equal(meant.name, name);
  assert_string_equal(meant.why, why);
}

static void nobody_names_one(void **state) {
  (void)state;
  setenv("SNSIM_NVML", FAKE_NVML, 1);
  unsetenv("SNSIM_GPU");
  unsetenv("FAKE_GPU_NAME");
  check_meant("rtx4090", "by default");
  setenv("FAKE_GPU_NAME", "NVIDIA GeForce RTX 3090", 1);
  check_meant("rtx3090", "this machine's");
  setenv("FAKE_GPU_NAME", "a GPU of the future", 1);
  check_meant("rtx4090", "by default");
  setenv("SNSIM_GPU", "A100-40GB", 1);
  check_meant("a100_40", "from $SNSIM_GPU");
  setenv("SNSIM_GPU", "./mine.json", 1);
  check_meant("./mine.json", "from $SNSIM_GPU");
  setenv("SNSIM_GPU", "", 1);
  setenv("SNSIM_NVML", "none", 1);
  check_meant("rtx4090", "by default");
  setenv("SNSIM_NVML", "./no such library", 1);
  check_meant("rtx4090", "by default");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(unknown_cards_have_neighbours), cmocka_unit_test(names_of_people),
                                     cmocka_unit_test(own_names), cmocka_unit_test(other_cards),
                                     cmocka_unit_test(nobody_names_one)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
