/* Clusters: the known ones against what was published, a file of one's own, every way in which one can be wrong, and on
 * how many nodes a group lies. */
#include "sim/cluster/cluster.h"
#include "sim/device/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static sn_cluster load(const char *name) {
  sn_err err = SN_ERR_INIT;
  sn_cluster c;
  if (sn_cluster_load(name, &c, &err) != SN_OK) fail_msg("%s", err.text);
  return c;
}

typedef struct row {
  const char *name, *gpu, *fabric;
  uint32_t nics;
  double line, bus, net_line, net_bus; /* GB/s */
} row;

static const row rows[] = {
    {"dgx_a100", "a100_80", "nvlink", 8, 300, 232, 25, 24},
    {"h100x8", "h100_sxm", "nvlink", 8, 450, 370, 50, 47},
    {"h200x8", "h200", "nvlink", 8, 450, 370, 50, 47},
    {"rtx4090x8", "rtx4090", "pcie", 0, 31.5, 25.9, 0, 0},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void known_clusters(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_cluster listed;
  assert_int_equal(sn_cluster_count(), ROWS);
  for (uint32_t i = 0; i < ROWS; i++) {
    sn_cluster c = load(rows[i].name);
    assert_string_equal(c.name, rows[i].name);
    assert_string_equal(c.gpu, rows[i].gpu);
    assert_true(c.description[0] != '\0' && sn_device_is_known(c.gpu));
    assert_string_equal(sn_fabric_word(c.fabric), rows[i].fabric);
    assert_int_equal(c.nics, rows[i].nics);
    assert_true(c.node.line == rows[i].line * 1e9 && c.node.bus == rows[i].bus * 1e9);
    assert_true(c.net.line == rows[i].net_line * 1e9 && c.net.bus == rows[i].net_bus * 1e9);
    assert_true(c.gpus_per_node == 8 && c.nodes == 1 && sn_cluster_gpus(&c) == 8);
    assert_true(c.communicator_bytes == UINT64_C(1) << 30);
    assert_int_equal(sn_cluster_known(i, &listed, &err), SN_OK); /* in alphabetical order */
    assert_memory_equal(&listed, &c, sizeof c);
  }
  assert_string_equal(load("DGX A100").name, "dgx_a100");
  assert_string_equal(load("RTX-4090x8").name, "rtx4090x8");
  assert_string_equal(sn_fabric_name(SN_FABRIC_PCIE), "PCIe");
}

static void unknown_names(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"h100x9", "unknown cluster \"h100x9\" (did you mean \"h100x8\"?); snsim list clusters shows them"},
      {"rtx4090x4", "did you mean \"rtx4090x8\"?"},
      {"tpu", "unknown cluster \"tpu\"; snsim list clusters shows them, and a path ending in .json is read"},
      {"", "unknown cluster \"\""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_cluster c;
    assert_int_equal(sn_cluster_load(cases[i][0], &c, &err), SN_BAD_USAGE);
    if (!strstr(err.text, cases[i][1])) fail_msg("%s", err.text);
  }
}

static void missing_files(void **state) {
  (void)state;
  static const char *const names[] = {"no_such_cluster.json", "./h100x8"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_cluster c;
    assert_int_equal(sn_cluster_load(names[i], &c, &err), SN_BAD_FILE);
    assert_non_null(strstr(err.text, names[i]));
  }
}

/* -- files ------------------------------------------------------------------------------------------------------- */

#define HEAD  "{\n \"snsim_cluster\": 1,\n \"name\": \"mine\",\n"
#define SIZES " \"gpu\": \"H100\",\n \"gpus_per_node\": 4,\n \"nodes\": 3,\n \"communicator_mib\": 512,\n"
#define NODE  " \"node\": {\"link\": \"pcie\",\n  \"line_gb_per_s\": 64,\n  \"bus_gb_per_s\": 50.5},\n"
#define NET   " \"net\": {\"nics\": 2,\n  \"line_gb_per_s\": 12.5,\n  \"bus_gb_per_s\": 12}"

static const char path[] = "test_cluster.json";

static sn_status load_text(const char *text, sn_cluster *c, sn_err *err) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  fclose(file);
  sn_status status = sn_cluster_load(path, c, err);
  unlink(path);
  return status;
}

static sn_cluster load_good(const char *text) {
  sn_err err = SN_ERR_INIT;
  sn_cluster c;
  if (load_text(text, &c, &err) != SN_OK) fail_msg("%s", err.text);
  return c;
}

static void own_file(void **state) {
  (void)state;
  sn_cluster c = load_good(HEAD SIZES NODE NET "}");
  assert_string_equal(c.name, "mine");
  assert_string_equal(c.description, "");
  assert_string_equal(c.gpu, "h100_sxm"); /* as people call it */
  assert_true(c.gpus_per_node == 4 && c.nodes == 3 && sn_cluster_gpus(&c) == 12 && c.nics == 2);
  assert_true(c.communicator_bytes == UINT64_C(512) << 20 && c.fabric == SN_FABRIC_PCIE);
  assert_true(c.node.line == 64e9 && c.node.bus == 50.5e9 && c.net.line == 12.5e9 && c.net.bus == 12e9);
  c = load_good(HEAD " \"gpu\": \"./mine.json\", \"description\": \"text\", \"gpus_per_node\": 1024, \"nodes\": 65536, "
                     "\"communicator_mib\": 0,\n" NODE NET "}");
  assert_string_equal(c.gpu, "./mine.json"); /* read by who asks for the device */
  assert_string_equal(c.description, "text");
  assert_true(sn_cluster_gpus(&c) == 67108864 && c.communicator_bytes == 0);
}

static void bad_files(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"", "test_cluster.json: the file is empty"},
      {"[]", "test_cluster.json:1: a cluster is a JSON object; see docs/parallel.md"},
      {"{", "test_cluster.json:1: not valid JSON"},
      {"{}", "\"snsim_cluster\" is missing"},
      {"{\"snsim_cluster\": 2}", "\"snsim_cluster\" must be 1, not 2"},
      {HEAD SIZES NODE NET ",\n \"nods\": 8}", "cluster.json:14: unknown key \"nods\" (did you mean \"nodes\"?)"},
      {HEAD SIZES NODE NET ",\n \"name\": \"x\"}", "cluster.json:14: the key \"name\" stands twice"},
      {"{\"snsim_cluster\": 1,\n \"name\": \"\"}", "cluster.json:2: \"name\" must have 1 to 63 bytes"},
      {HEAD " \"gpu\": 7}", "cluster.json:4: \"gpu\" must be a text in quotes"},
      {HEAD " \"gpu\": \"h101\"}", "cluster.json:4: unknown GPU \"h101\""},
      {HEAD " \"gpu\": \"knl7250\"}", "cluster.json:4: \"gpu\": knl7250 is no GPU"},
      {HEAD " \"gpu\": \"h100\",\n \"gpus_per_node\": 0}",
       "cluster.json:5: \"gpus_per_node\" must be a whole number from 1 to 1024, not 0"},
      {HEAD " \"gpu\": \"h100\",\n \"gpus_per_node\": 8,\n \"nodes\": -1}",
       "cluster.json:6: \"nodes\" must be a whole number from 1 to 65536, not -1"},
      {HEAD " \"gpu\": \"h100\",\n \"gpus_per_node\": 8,\n \"nodes\": 1e30}", "\"nodes\" must be a whole number"},
      {HEAD " \"gpu\": \"h100\",\n \"gpus_per_node\": 1.5}", "not 1.5"},
      {HEAD " \"gpu\": \"h100\", \"gpus_per_node\": 8, \"nodes\": 1,\n \"communicator_mib\": 2000000}",
       "cluster.json:5: \"communicator_mib\" must be a whole number from 0 to 1048576, not 2000000"},
      {HEAD SIZES NET "}", "\"node\" is missing: the link of a node's GPUs"},
      {HEAD SIZES " \"node\": 3,\n" NET "}", "cluster.json:8: expected an object: {...}"},
      {HEAD SIZES " \"node\": {\"link\": \"nvlnk\"},\n" NET "}",
       "cluster.json:8: unknown link \"nvlnk\" (did you mean \"nvlink\"?); there are nvlink and pcie"},
      {HEAD SIZES " \"node\": {\"link\": \"pcie\",\n \"line_gb_per_s\": 0},\n" NET "}",
       "cluster.json:9: \"line_gb_per_s\" must be from 0.001 to 1000000, not 0"},
      {HEAD SIZES " \"node\": {\"link\": \"pcie\",\n \"line_gb_per_s\": NaN},\n" NET "}",
       "cluster.json:9: not valid JSON"},
      {HEAD SIZES " \"node\": {\"link\": \"pcie\",\n \"line_gb_per_s\": 1e999},\n" NET "}",
       "\"line_gb_per_s\" must be"},
      {HEAD SIZES " \"node\": {\"link\": \"pcie\", \"line_gb_per_s\": 3,\n \"bus_gb_per_s\": -2},\n" NET "}",
       "cluster.json:9: \"bus_gb_per_s\" must be from 0.001 to 1000000, not -2"},
      {HEAD SIZES " \"node\": {\"link\": \"nvlink\", \"line_gb_per_s\": 450,\n \"bus_gb_per_s\": 480},\n" NET "}",
       "cluster.json:9: \"bus_gb_per_s\" is more than \"line_gb_per_s\", which no ring is: give the busbw of "
       "all_gather_perf"},
      {HEAD SIZES NODE " \"description\": \"\"}", "\"description\" must have 1 to 199 bytes"},
      {HEAD SIZES NODE " \"description\": \"x\"}",
       "cluster.json:6: \"net\" is missing: with 3 nodes, what joins them has to be known"},
      {HEAD SIZES NODE " \"net\": {\"nics\": 0}}", "\"nics\" must be a whole number from 1 to 1024, not 0"},
      {HEAD SIZES NODE " \"net\": {\"nic\": 1}}", "unknown key \"nic\" (did you mean \"nics\"?)"},
      {HEAD SIZES NODE " \"net\": {\"nics\": 1, \"line_gb_per_s\": 3}}", "\"bus_gb_per_s\" is missing"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_cluster c;
    assert_int_equal(load_text(cases[i][0], &c, &err), SN_BAD_INPUT);
    if (!strstr(err.text, cases[i][1])) fail_msg("case %zu: %s", i, err.text);
  }
}

/* -- nodes ------------------------------------------------------------------------------------------------------- */

static void more_nodes(void **state) {
  (void)state;
  sn_cluster h = load("h100x8"), g = load("rtx4090x8");
  sn_err err = SN_ERR_INIT;
  assert_int_equal(sn_cluster_set_nodes(&h, 8, &err), SN_OK);
  assert_int_equal(sn_cluster_gpus(&h), 64);
  assert_int_equal(sn_cluster_set_nodes(&g, 1, &err), SN_OK);
  assert_int_equal(sn_cluster_set_nodes(&g, 2, &err), SN_BAD_USAGE);
  assert_non_null(strstr(err.text, "cluster rtx4090x8 has one node, as no network is known"));
  for (int i = 0; i < 3; i++) {
    static const uint64_t counts[] = {0, 65537, UINT64_MAX};
    sn_err bad = SN_ERR_INIT;
    assert_int_equal(sn_cluster_set_nodes(&h, counts[i], &bad), SN_BAD_USAGE);
    assert_non_null(strstr(bad.text, "a cluster has 1 to 65536"));
  }
  assert_true(h.nodes == 8 && g.nodes == 1);
}

static void groups(void **state) {
  (void)state;
  sn_cluster c = load("h100x8");
  assert_int_equal(sn_cluster_nodes_of(&c, 3, 1), 1); /* there is no second node */
  c.nodes = 8;
  static const uint32_t cases[][3] = {
      {1, 1, 1}, {8, 1, 1}, {4, 2, 1}, {2, 4, 1}, {16, 1, 2}, {8, 4, 4}, {4, 8, 4}, {2, 32, 2}, {3, 1, 2}, {64, 1, 8},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_int_equal(sn_cluster_nodes_of(&c, cases[i][0], cases[i][1]), cases[i][2]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_clusters), cmocka_unit_test(unknown_names), cmocka_unit_test(missing_files),
      cmocka_unit_test(own_file),       cmocka_unit_test(bad_files),     cmocka_unit_test(more_nodes),
      cmocka_unit_test(groups),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
