/* Device profiles: the known ones against the reference's table (section 3), a profile of one's own, every way in which
 * one can be wrong; and the simulated device on a very slow link. */
#include "tests/support/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

typedef struct row {
  const char *name;
  uint32_t mib; /* 0: nominal GiB stand in */
  uint32_t gib;
  double memory, flops, host; /* GB/s, TFLOP/s, GB/s */
} row;

static const row rows[] = {
    {"a100_40", 40335, 40, 1555, 19.49, 24},
    {"a100_80", 81050, 80, 2039, 19.49, 24},
    {"a10g", 22518, 24, 600, 31.52, 24},
    {"a40", 45404, 48, 696, 37.4, 24},
    {"a6000", 48507, 48, 768, 38.71, 24},
    {"b200", 182641, 180, 8000, 80, 50},
    {"gtx1060_6", 0, 6, 192.2, 4.375, 12},
    {"gtx1080ti", 11178, 11, 484.4, 11.34, 12},
    {"gtx1650", 0, 4, 128.1, 2.984, 12},
    {"h100_pcie", 80998, 80, 2039, 51.22, 50},
    {"h100_sxm", 80998, 80, 3350, 66.91, 50},
    {"h200", 143155, 141, 4800, 66.91, 50},
    {"k40c", 11439, 12, 288.4, 5.05, 8},
    {"knl7250", 16384, 16, 400, 6.09, 90},
    {"l4", 22559, 24, 300, 30.3, 24},
    {"l40", 0, 48, 864, 90.52, 24},
    {"l40s", 45404, 48, 864, 91.6, 24},
    {"m40", 11443, 12, 288.4, 6.83, 12},
    {"mi250x", 0, 64, 1638.4, 23.95, 24},
    {"mi300x", 0, 192, 5300, 163.4, 50},
    {"orin_agx_64", 0, 64, 204.8, 5.3, 100},
    {"p100_16", 16280, 16, 732.2, 9.53, 12},
    {"p40", 22917, 24, 347.1, 11.76, 12},
    {"rtx2060", 5929, 6, 336, 6.451, 12},
    {"rtx2080ti", 11019, 11, 616, 13.45, 12},
    {"rtx3050", 0, 8, 224, 9.098, 12},
    {"rtx3060", 12032, 12, 360, 12.74, 24},
    {"rtx3060ti", 0, 8, 448, 16.2, 24},
    {"rtx3070", 7967, 8, 448, 20.31, 24},
    {"rtx3080", 10015, 10, 760.3, 29.77, 24},
    {"rtx3090", 24259, 24, 936.2, 35.58, 24},
    {"rtx4060_laptop", 7936, 8, 256, 14.56, 12},
    {"rtx4070", 11981, 12, 504.2, 29.15, 24},
    {"rtx4080", 0, 16, 716.8, 48.74, 24},
    {"rtx4090", 24084, 24, 1008, 82.58, 24},
    {"rtx5090", 32113, 32, 1792, 104.8, 50},
    {"t4", 14909, 16, 320, 8.14, 12},
    {"titan_v", 12066, 12, 651.3, 14.9, 12},
    {"titan_x_maxwell", 12206, 12, 336.6, 6.69, 12},
    {"titan_xp", 12196, 12, 547.6, 12.15, 12},
    {"v100_16", 16160, 16, 897, 14.13, 12},
    {"v100_32", 32510, 32, 898, 15.67, 12},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static bool is(double value, double expected) {
  return fabs(value / expected - 1) < 1e-9;
}

/* A context takes 0.3 to 0.6 GiB. */
static void is_plausible(const sn_device *d) {
  assert_true(d->gemm_efficiency > 0 && d->gemm_efficiency <= 1);
  assert_true(d->conv_efficiency > 0 && d->conv_efficiency <= 1);
  assert_true(d->memory_efficiency > 0 && d->memory_efficiency <= 1);
  if (d->cores.count > 0) return; /* times are its law's: test_cores.c */
  assert_true(d->launch_ns > 0 && d->malloc_ns > 0 && d->free_ns > 0 && d->link_latency_ns > 0);
  assert_true(d->link_bandwidth[SN_EXTERNAL_PEER] > 0 && d->link_bandwidth[SN_EXTERNAL_REMOTE] > 0);
  assert_true(d->context_bytes >= 322122547 && d->context_bytes <= 644245094);
}

static void known_devices(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_device listed;
  for (uint32_t i = 0; i < ROWS; i++) {
    sn_device d = load_gpu(rows[i].name);
    assert_string_equal(d.name, rows[i].name);
    assert_true(d.description[0] != '\0');
    assert_int_equal(d.memory_nominal, rows[i].mib == 0);
    double share = strcmp(rows[i].name, "l40") == 0 ? 0.92 : 0.98; /* ECC on GDDR6 */
    uint64_t bytes = rows[i].mib ? (uint64_t)rows[i].mib << 20 : (uint64_t)llround(rows[i].gib * share * 0x1p30);
    assert_true(d.memory_bytes == bytes);
    uint64_t nominal = (uint64_t)rows[i].gib << 30;
    assert_true(d.memory_bytes <= nominal && d.memory_bytes * 10 >= nominal * 9);
    assert_true(is(d.memory_bandwidth, rows[i].memory * 1e9));
    assert_true(is(d.flops, rows[i].flops * 1e12));
    assert_true(is(d.link_bandwidth[SN_EXTERNAL_HOST], rows[i].host * 1e9));
    is_plausible(&d);
    assert_int_equal(sn_device_known(i, &listed, &err), SN_OK); /* in alphabetical order */
    assert_memory_equal(&listed, &d, sizeof d);
  }
  assert_int_equal(sn_device_count(), ROWS);
}

/* Cards whose published times were looked at, their architectures, and all others; a user's own card is none of them. */
static void times_come_from_somewhere(void **state) {
  static const struct {
    const char *gpu, *from;
  } cases[] = {{"k40c", "fitted"},
               {"rtx3090", "fitted"},
               {"rtx4090", "fitted"},
               {"knl7250", "fitted"},
               {"a100_80", "carried over"},
               {"l4", "carried over"},
               {"t4", "data sheet"},
               {"h200", "data sheet"},
               {"mi300x", "data sheet"},
               {"v100_16", "data sheet"},
               {"manycore:cores=8,slots=1,tile=1", "data sheet"}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_string_equal(sn_times_from_name(load_gpu(cases[i].gpu).times_from), cases[i].from);
}

/* A context in PyTorch is what users report of such GPUs; all kernels at once take more, with a CONV more still. A
 * profile's own figure has no range. */
static void library_contexts(void **state) {
  (void)state;
  sn_device d = load_gpu("rtx4090");
  assert_true(d.library_context_bytes == (uint64_t)llround(0.44 * 0x1p30));
  assert_true(d.library_context_seen[0] == (uint64_t)llround(0.11 * 0x1p30));
  assert_true(d.library_context_seen[1] == (uint64_t)llround(0.51 * 0x1p30));
  sn_device_load_eagerly(&d);
  assert_true(d.library_context_bytes == (uint64_t)llround(1.43 * 0x1p30));
  assert_true(d.library_context_seen[1] == 0);
  sn_err err = SN_ERR_INIT;
  const uint64_t conv = (uint64_t)llround(1.79 * 0x1p30);
  static const char *const nets[] = {"alexnet", "gpt2"};
  for (int i = 0; i < 2; i++) {
    sn_net *net = sn_net_load(nets[i], 1, 0, &err);
    assert_non_null(net);
    assert_true(sn_device_context(&d, net, true) == (i == 0 ? conv : d.library_context_bytes));
    sn_net_free(net);
  }
  assert_true(load_gpu("titan_v").library_context_seen[0] == 0);
}

/* The paper's card: 8 GB/s to the host, 10 to a peer, 6 over RDMA; Kepler has no Winograd kernels. */
static void paper_device(void **state) {
  (void)state;
  sn_device d = load_gpu("k40c");
  assert_true(is(d.link_bandwidth[SN_EXTERNAL_PEER], 10e9));
  assert_true(is(d.link_bandwidth[SN_EXTERNAL_REMOTE], 6e9));
  assert_false(d.winograd);
  assert_true(d.context_bytes == 322122547);                   /* 0.3 GiB */
  assert_true(load_gpu("titan_v").context_bytes == 483183821); /* 0.45 GiB */
  assert_true(load_gpu("m40").winograd);
}

static void unknown_names(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"k40x", "unknown GPU \"k40x\" (did you mean \"k40\"?); snsim list gpus shows them"},
      {"rtx4091", "did you mean \"rtx4090\"?"},
      {"h101", "unknown GPU \"h101\" (did you mean \"h100\"?)"},
      {"4091", "unknown GPU \"4091\" (did you mean \"rtx4090\"?)"},
      {"tpu", "unknown GPU \"tpu\""},
      {"", "unknown GPU \"\""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_device d;
    assert_int_equal(sn_device_load(cases[i][0], &d, &err), SN_BAD_USAGE);
    if (!strstr(err.text, cases[i][1])) fail_msg("%s", err.text);
  }
}

/* ---- files ---- */

#define HEAD                                                                                                           \
  "{\n \"snsim_gpu\": 1,\n \"name\": \"mine\",\n \"architecture\": \"turing\",\n \"context_gib\": 0.5,\n"              \
  " \"fp32_tflops\": 10,\n \"memory_gb_per_s\": 500,\n"
#define MEMORY " \"memory_mib\": 8000,\n"
#define LINKS  " \"host_gb_per_s\": 20,\n \"peer_gb_per_s\": 30,\n \"remote_gb_per_s\": 5"

static const char path[] = "test_device_profile.json";

static sn_status load_text(const char *text, sn_device *d, sn_err *err) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  fclose(file);
  sn_status status = sn_device_load(path, d, err);
  unlink(path);
  return status;
}

static sn_device load_good(const char *text) {
  sn_err err = SN_ERR_INIT;
  sn_device d;
  if (load_text(text, &d, &err) != SN_OK) fail_msg("%s", err.text);
  return d;
}

static void own_file(void **state) {
  (void)state;
  sn_device d = load_good(HEAD MEMORY LINKS "}"), turing = load_gpu("t4");
  assert_string_equal(d.name, "mine");
  assert_string_equal(d.description, "");
  assert_true(d.memory_bytes == UINT64_C(8000) << 20 && !d.memory_nominal);
  assert_true(d.context_bytes == UINT64_C(1) << 29);
  assert_true(is(d.flops, 10e12) && is(d.memory_bandwidth, 500e9));
  assert_true(is(d.link_bandwidth[SN_EXTERNAL_REMOTE], 5e9));
  assert_true(is(d.link_bandwidth[SN_EXTERNAL_DISK], SN_DISK_BANDWIDTH)); /* nothing is said of it */
  assert_true(is(load_good(HEAD MEMORY LINKS ", \"disk_gb_per_s\": 6.5}").link_bandwidth[SN_EXTERNAL_DISK], 6.5e9));
  assert_true(d.gemm_efficiency == turing.gemm_efficiency && d.conv_efficiency == turing.conv_efficiency);
  assert_true(d.launch_ns == turing.launch_ns && d.malloc_ns == turing.malloc_ns && d.winograd);
}

static void own_constants(void **state) {
  (void)state;
  sn_device d = load_good(HEAD " \"nominal_gib\": 8,\n" LINKS
                               ",\n \"description\": \"text\", \"gemm_efficiency\": 1, \"conv_efficiency\": 0.5, "
                               "\"memory_efficiency\": 0.25, \"winograd\": false, \"launch_us\": 2.5, "
                               "\"malloc_us\": 30, \"free_us\": 40, \"link_latency_us\": 7, "
                               "\"library_context_gib\": 0.5, \"eager_context_gib\": 1.25, \"eager_conv_gib\": 0.5}");
  assert_true(d.memory_bytes == (uint64_t)llround(8 * 0.98 * 0x1p30) && d.memory_nominal);
  assert_string_equal(d.description, "text");
  assert_true(is(d.gemm_efficiency, 1) && is(d.conv_efficiency, 0.5) && is(d.memory_efficiency, 0.25));
  assert_int_equal(d.launch_ns, 2500);
  assert_int_equal(d.malloc_ns, 30000);
  assert_int_equal(d.free_ns, 40000);
  assert_int_equal(d.link_latency_ns, 7000);
  assert_false(d.winograd);
  assert_true(d.library_context_bytes == 1 << 29 && d.library_context_seen[1] == 0);
  sn_device_load_eagerly(&d);
  assert_true(d.library_context_bytes == 5 << 28 && d.conv_context_bytes == 1 << 29);
}

/* Who asks what overheads cost sets them to nothing. */
static void no_overheads(void **state) {
  (void)state;
  sn_device d = load_good("{\"snsim_gpu\": 1, \"name\": \"free\", \"architecture\": \"ada\", \"context_gib\": 0, "
                          "\"fp32_tflops\": 10, \"memory_gb_per_s\": 500, \"launch_us\": 0, \"malloc_us\": 0, "
                          "\"free_us\": 0, \"link_latency_us\": 0,\n" MEMORY LINKS "}");
  assert_true(d.launch_ns == 0 && d.malloc_ns == 0 && d.free_ns == 0 && d.link_latency_ns == 0);
  assert_true(d.context_bytes == 0);
}

#define LONG_NAME "0123456789012345678901234567890123456789012345678901234567890123"

static void bad_files(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"", "test_device_profile.json: the file is empty"},
      {"[]", "test_device_profile.json:1: a GPU profile is a JSON object; see docs/devices.md"},
      {"{", "test_device_profile.json:1: not valid JSON"},
      {"{}", "\"snsim_gpu\" is missing"},
      {HEAD MEMORY LINKS ",\n \"memory_gib\": 8}", "profile.json:12: unknown key \"memory_gib\""},
      {HEAD MEMORY LINKS ",\n \"name\": \"x\"}", "profile.json:12: the key \"name\" stands twice"},
      {"{\"snsim_gpu\": 2}", "\"snsim_gpu\" must be 1, not 2"},
      {"{\"snsim_gpu\": 1}", "\"name\" is missing"},
      {"{\"snsim_gpu\": 1,\n \"name\": \"\"}", "profile.json:2: \"name\" must have 1 to 63 bytes"},
      {"{\"snsim_gpu\": 1, \"name\": \"" LONG_NAME "\"}", "\"name\" must have 1 to 63 bytes"},
      {"{\"snsim_gpu\": 1, \"name\": 7}", "\"name\" must be a text in quotes"},
      {HEAD LINKS "}", "\"memory_mib\" is missing (\"nominal_gib\" where it is not known)"},
      {HEAD MEMORY LINKS ",\n \"nominal_gib\": 8}",
       "profile.json:12: \"memory_mib\" and \"nominal_gib\" are both given; keep one"},
      {HEAD MEMORY LINKS ",\n \"free_us\": -1}", "profile.json:12: \"free_us\" must be from 0 to 1000000, not -1"},
      {HEAD MEMORY "\"host_gb_per_s\": 3}", "\"peer_gb_per_s\" is missing"},
      {HEAD " \"memory_mib\": \"8\",\n" LINKS "}", "profile.json:8: \"memory_mib\" must be a number"},
      {HEAD " \"memory_mib\": 0,\n" LINKS "}",
       "profile.json:8: \"memory_mib\" must be from 0.001 to 1000000000, not 0"},
      {HEAD " \"memory_mib\": -5,\n" LINKS "}", "\"memory_mib\" must be from"},
      {HEAD " \"memory_mib\": 1e30,\n" LINKS "}", "\"memory_mib\" must be from"},
      {HEAD MEMORY LINKS ",\n \"gemm_efficiency\": 1.5}", "profile.json:12: \"gemm_efficiency\" must be from"},
      {HEAD MEMORY LINKS ",\n \"cores\": {}}",
       "profile.json:4: \"architecture\" is a GPU's: beside \"cores\" it means nothing; leave it out"},
      {HEAD MEMORY LINKS ",\n \"winograd\": 1}", "\"winograd\" must be true or false"},
      {"{\"snsim_gpu\": 1, \"name\": \"x\",\n \"architecture\": \"voltta\", \"memory_mib\": 1, \"context_gib\": "
       "1,\n" LINKS "}",
       "profile.json:2: unknown architecture \"voltta\" (did you mean \"volta\"?); there are kepler, maxwell, pascal, "
       "volta, "
       "turing, ampere, ada, hopper, blackwell"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_device d;
    assert_int_equal(load_text(cases[i][0], &d, &err), SN_BAD_INPUT);
    if (!strstr(err.text, cases[i][1])) fail_msg("case %zu: %s", i, err.text);
  }
}

static void missing_files(void **state) {
  (void)state;
  static const char *const names[] = {"no_such_gpu.json", "./k40c", "no/such/gpu"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_device d;
    assert_int_equal(sn_device_load(names[i], &d, &err), SN_BAD_FILE);
    assert_non_null(strstr(err.text, names[i]));
  }
}

static void external_pools(void **state) {
  (void)state;
  for (sn_external e = 0; e < SN_EXTERNAL_COUNT; e++) {
    sn_err err = SN_ERR_INIT;
    sn_external parsed = SN_EXTERNAL_COUNT;
    assert_int_equal(sn_external_parse(sn_external_name(e), &parsed, &err), SN_OK);
    assert_int_equal(parsed, e);
  }
  sn_err err = SN_ERR_INIT;
  sn_external parsed = SN_EXTERNAL_PEER;
  assert_int_equal(sn_external_parse("hots", &parsed, &err), SN_BAD_USAGE);
  assert_non_null(strstr(err.text, "did you mean \"host\"?"));
  assert_int_equal(parsed, SN_EXTERNAL_PEER);
}

/* A link slower than any profile may have, 1000 bytes/s: AlexNet's 2.6 MB of CONV outputs take 2600 s, out and back;
 * VGG16's at batch 1024 would take years, which is refused. */
static void slowest_link(void **state) {
  (void)state;
  for (int shared = 0; shared < 2; shared++) {
    pipeline p = pipeline_open("alexnet", 1);
    pipeline_plan(&p, "liveness+offload", SN_WORKSPACE_NONE, UINT64_MAX);
    p.device.link_bandwidth[SN_EXTERNAL_HOST] = 1000;
    sn_trace trace = pipeline_play(&p, shared);
    assert_true(trace.end_ns > INT64_C(5200) * 1000000000 / 2 && trace.end_ns < INT64_C(5400) * 1000000000);
    sn_trace_clear(&trace);
    pipeline_close(&p);

    p = pipeline_open("vgg16", 1024);
    pipeline_plan(&p, "liveness+offload", SN_WORKSPACE_NONE, UINT64_MAX);
    p.device.link_bandwidth[SN_EXTERNAL_HOST] = 1000;
    sn_device_model model = {.device = &p.device, .costs = p.costs, .shared_link = shared};
    sn_err err = SN_ERR_INIT;
    sn_trace_init(&trace, p.plan, &err);
    assert_int_equal(sn_play(p.plan, sn_device_model_backend(&model), &trace, &err), SN_BAD_INPUT);
    assert_non_null(strstr(err.text, "choose a smaller batch"));
    sn_trace_clear(&trace);
    pipeline_close(&p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_devices),    cmocka_unit_test(times_come_from_somewhere),
      cmocka_unit_test(library_contexts), cmocka_unit_test(paper_device),
      cmocka_unit_test(unknown_names),    cmocka_unit_test(own_file),
      cmocka_unit_test(own_constants),    cmocka_unit_test(no_overheads),
      cmocka_unit_test(bad_files),        cmocka_unit_test(missing_files),
      cmocka_unit_test(external_pools),   cmocka_unit_test(slowest_link),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
