/* Tables: which member of which struct of sim/ask/run.h, sim/device/calibration.h and db/sweep.h is which column. The
 * SQL of rows.c and both directions of moving data come from these lists, so they cannot disagree; test_store.c checks
 * that no member is forgotten.
 *
 * A new member needs a line here, one of a result its line of SN_RESULT_FIELDS; and another schema number in schema.c
 * once there was a release. */
#include "db/store_internal.h"

#include "db/sweep.h"
#include "sim/device/device.h"
#include "sim/graph/dialect.h"

#include <string.h>

#define KIND(member)                                                                                                   \
  _Generic((member), const char *                                                                                      \
           : SN__TEXT, bool                                                                                            \
           : SN__BOOL, uint32_t                                                                                        \
           : SN__U32, uint64_t                                                                                         \
           : SN__U64, int64_t                                                                                          \
           : SN__NS, double                                                                                            \
           : SN__REAL, const sn_step_row *                                                                             \
           : SN__PRESENT, const sn_peak_row *                                                                          \
           : SN__PRESENT, const sn_tensor_row *                                                                        \
           : SN__PRESENT, sn_blob                                                                                      \
           : SN__BLOB)
#define NAMED(name, type, member)                                                                                      \
  { name, KIND(((type *)0)->member), offsetof(type, member), false }
#define COLUMN(type, member) NAMED(#member, type, member)
/* A double that is no less than 0, or lies between 0 and 1. */
#define AMOUNT(type, member) AMOUNT_AS(#member, type, member)
#define AMOUNT_AS(name, type, member)                                                                                  \
  { name, SN__AMOUNT, offsetof(type, member), false }
#define SHARE(type, member)                                                                                            \
  { #member, SN__SHARE, offsetof(type, member), false }
#define ASKED(type, member)                                                                                            \
  { #member, KIND(((type *)0)->member), offsetof(type, member), true }
#define OF_RUN_CONDITIONS(type, name, usual, told, over, title, axis) NAMED(#name, sn_run, conditions.name),
#define OF_POINT_CONDITIONS(type, name, usual, told, over, title, axis)                                                \
  {#name, KIND(((sn_sweep_row *)0)->conditions.name), offsetof(sn_sweep_row, conditions.name), true},
#define COUNT(columns) (unsigned)(sizeof(columns) / sizeof(columns)[0])

static const sn__column device_columns[] = {
    NAMED("name", sn_run, gpu),
    COLUMN(sn_run, memory_bytes),
    COLUMN(sn_run, memory_nominal),
};

static const sn__column run_columns[] = {
    COLUMN(sn_run, version),
    COLUMN(sn_run, net),
    COLUMN(sn_run, net_name),
    COLUMN(sn_run, batch),
    COLUMN(sn_run, image_height),
    COLUMN(sn_run, image_width),
    COLUMN(sn_run, image_depth),
    COLUMN(sn_run, host_memory_bytes),
    SN_CONDITIONS(OF_RUN_CONDITIONS) COLUMN(sn_run, costs),
    COLUMN(sn_run, device),
    COLUMN(sn_run, data),
    COLUMN(sn_run, iterations),
    COLUMN(sn_run, layers),
    COLUMN(sn_run, n_steps),
    COLUMN(sn_run, parameters),
    COLUMN(sn_run, macs),
    COLUMN(sn_run, n_results),
    COLUMN(sn_run, n_tensors),
    NAMED("has_tensors", sn_run, tensors),
    COLUMN(sn_run, name),
    COLUMN(sn_run, warmup),
    COLUMN(sn_run, processors),
    AMOUNT(sn_run, load),
    AMOUNT(sn_run, disk_bandwidth),
    COLUMN(sn_run, n_failures),
    COLUMN(sn_run, n_origins),
    COLUMN(sn_run, answer),
};

#define OF_RESULT_PLAIN(member)  KIND(((sn_result *)0)->member)
#define OF_RESULT_AMOUNT(member) SN__AMOUNT
#define OF_RESULT_SHARE(member)  SN__SHARE
#define OF_RESULT_WHOLE(member)  SN__I64 /* all 64 bits of it: SQLite's integers have a sign */
#define OF_RESULT_FIELD(range, member, name, column)                                                                   \
  {column, OF_RESULT_##range(member), offsetof(sn_result, member), false},
static const sn__column result_columns[] = {
    SN_RESULT_FIELDS(OF_RESULT_FIELD) COLUMN(sn_result, graph),
    COLUMN(sn_result, fastest_ns),
    COLUMN(sn_result, slowest_ns),
    COLUMN(sn_result, recording),
    COLUMN(sn_result, n_steps),
    COLUMN(sn_result, n_peak),
    NAMED("has_steps", sn_result, steps),
    NAMED("has_peak", sn_result, peak),
};

/* What a step is called is the same for every strategy of a run, so it is stored once. */
static const sn__column route_columns[] = {
    COLUMN(sn_step_row, layer),
    COLUMN(sn_step_row, op),
    COLUMN(sn_step_row, pass),
};

static const sn__column step_columns[] = {
    COLUMN(sn_step_row, tensor_bytes), COLUMN(sn_step_row, live_tensors), COLUMN(sn_step_row, workspace_bytes),
    COLUMN(sn_step_row, device_bytes), COLUMN(sn_step_row, begin_ns),     COLUMN(sn_step_row, end_ns),
};

static const sn__column peak_columns[] = {
    COLUMN(sn_peak_row, tensor),     COLUMN(sn_peak_row, producer),  COLUMN(sn_peak_row, bytes),
    COLUMN(sn_peak_row, since_step), COLUMN(sn_peak_row, next_step), COLUMN(sn_peak_row, advice),
};

static const sn__column failure_columns[] = {
    COLUMN(sn_failure, strategy),
    COLUMN(sn_failure, reason),
};

static const sn__column origin_columns[] = {
    COLUMN(sn_origin, what),
    COLUMN(sn_origin, path),
};

static const sn__column tensor_columns[] = {
    NAMED("tensor_id", sn_tensor_row, id), COLUMN(sn_tensor_row, name),  COLUMN(sn_tensor_row, kind),
    COLUMN(sn_tensor_row, layer),          COLUMN(sn_tensor_row, bytes),
};

static const sn__column calibration_columns[] = {
    COLUMN(sn_calibration, name),
    COLUMN(sn_calibration, backend),
    COLUMN(sn_calibration, hardware),
    COLUMN(sn_calibration, libraries),
    NAMED("memory_bytes", sn_calibration, profile.memory_bytes),
    NAMED("context_bytes", sn_calibration, profile.context_bytes),
    NAMED("kernel_bytes", sn_calibration, profile.kernel_bytes),
    AMOUNT_AS("flops", sn_calibration, profile.flops),
    AMOUNT_AS("memory_bandwidth", sn_calibration, profile.memory_bandwidth),
    NAMED("launch_ns", sn_calibration, profile.launch_ns),
    AMOUNT_AS("link_bandwidth", sn_calibration, profile.link_bandwidth[SN_EXTERNAL_HOST]),
    NAMED("link_latency_ns", sn_calibration, profile.link_latency_ns),
    AMOUNT_AS("compute_speed", sn_calibration, profile.compute_speed),
    AMOUNT_AS("copy_speed", sn_calibration, profile.copy_speed),
    COLUMN(sn_calibration, shared_link),
    AMOUNT(sn_calibration, out_bandwidth),
    AMOUNT(sn_calibration, in_bandwidth),
    AMOUNT(sn_calibration, together_bandwidth),
    COLUMN(sn_calibration, out_latency_ns),
    COLUMN(sn_calibration, in_latency_ns),
    NAMED("cores", sn_calibration, cores.count),
    AMOUNT_AS("interference", sn_calibration, cores.neighbour),
    AMOUNT_AS("resize_ns", sn_calibration, cores.resize_ns),
};

static const sn__column timing_columns[] = {
    COLUMN(sn_timing, shape),  COLUMN(sn_timing, op),         COLUMN(sn_timing, pass),
    COLUMN(sn_timing, kernel), COLUMN(sn_timing, algo),       COLUMN(sn_timing, workspace_bytes),
    COLUMN(sn_timing, ns),     COLUMN(sn_timing, formula_ns), COLUMN(sn_timing, samples),
    COLUMN(sn_timing, part),   COLUMN(sn_timing, threads),    COLUMN(sn_timing, spread_ns),
};

static const sn__column point_columns[] = {
    COLUMN(sn_sweep_row, point),
    COLUMN(sn_sweep_row, session),
    ASKED(sn_sweep_row, net),
    COLUMN(sn_sweep_row, net_name),
    ASKED(sn_sweep_row, gpu),
    ASKED(sn_sweep_row, image),
    ASKED(sn_sweep_row, memory_bytes),
    SN_CONDITIONS(OF_POINT_CONDITIONS) ASKED(sn_sweep_row, batch),
    COLUMN(sn_sweep_row, strategy),
    COLUMN(sn_sweep_row, failure),
    COLUMN(sn_sweep_row, fits),
    COLUMN(sn_sweep_row, peak_device_bytes),
    COLUMN(sn_sweep_row, least_device_bytes),
    COLUMN(sn_sweep_row, peak_tensor_bytes),
    COLUMN(sn_sweep_row, placement),
    COLUMN(sn_sweep_row, pool_bytes),
    COLUMN(sn_sweep_row, largest_load_bytes),
    COLUMN(sn_sweep_row, workspace_peak_bytes),
    COLUMN(sn_sweep_row, offload_bytes),
    COLUMN(sn_sweep_row, prefetch_bytes),
    COLUMN(sn_sweep_row, external_bytes),
    COLUMN(sn_sweep_row, recomputed_layers),
    COLUMN(sn_sweep_row, iteration_ns),
    COLUMN(sn_sweep_row, stall_ns),
    AMOUNT(sn_sweep_row, images_per_second),
};

static bool is_among(const char *word, const char *const *words) {
  while (*words && strcmp(word, *words) != 0) words++;
  return *words != NULL;
}

#define DIALECT_WORD(id, name) name,
#define DIALECT_TEXT(id, name) " OR dialect = '" name "'"
static bool result_obeys(const void *row) {
  static const char *const placements[] = {"packed", "first_fit", NULL},
                           *const dialects[] = {SN_DIALECT_LIST(DIALECT_WORD) NULL},
                           *const orders[] = {"route", "post", "serial", "bfs", NULL};
  const sn_result *r = row;
  return is_among(r->placement, placements) && is_among(r->dialect, dialects) && is_among(r->step_order, orders);
}

/* A point that has failed has no plan, and no placement. */
static bool point_obeys(const void *row) {
  static const char *const placements[] = {"", "packed", "first_fit", NULL};
  return is_among(((const sn_sweep_row *)row)->placement, placements);
}

static bool step_obeys(const void *row) {
  const sn_step_row *step = row;
  return step->begin_ns <= step->end_ns;
}

/* What a profile from a file may hold (sim/device/device.c), so that no cost overflows. */
#define MOST_LATENCY_NS 1000000000
static bool calibration_obeys(const void *row) {
  const sn_calibration *c = row;
  const sn_device *p = &c->profile;
  return p->flops > 0 && p->memory_bandwidth > 0 && p->link_bandwidth[SN_EXTERNAL_HOST] > 0 &&
         p->launch_ns <= MOST_LATENCY_NS && p->link_latency_ns <= MOST_LATENCY_NS &&
         p->memory_bytes <= SN__MOST_DEVICE_BYTES && p->context_bytes <= SN__MOST_DEVICE_BYTES &&
         p->kernel_bytes <= SN__MOST_KERNEL_BYTES &&
         (c->cores.count == 0 || (c->cores.count >= SN_MIN_CORES && c->cores.count <= SN_MAX_CORES)) &&
         c->cores.neighbour <= SN_MAX_INTERFERENCE && c->cores.resize_ns <= SN_MAX_RESIZE_NS;
}

static bool timing_obeys(const void *row) {
  const sn_timing *t = row;
  return t->op < SN_OP_COUNT && t->pass < SN_PASSES && t->kernel <= SN_CONV_KERNELS && t->algo <= SN_CONV_ALGOS &&
         t->workspace_bytes <= SN__MOST_DEVICE_BYTES && t->part < SN_TIMING_PARTS && t->threads <= SN_MAX_CORES;
}

#define RESULT_RULE                                                                                                    \
  "placement IN ('packed', 'first_fit') AND (0" SN_DIALECT_LIST(                                                       \
      DIALECT_TEXT) ")"                                                                                                \
                    " AND step_order IN ('route', 'post', 'serial', 'bfs')"
/* With IN, SQLite would make a table of three texts for every row. */
#define POINT_RULE "placement = '' OR placement = 'packed' OR placement = 'first_fit'"
#define STEP_RULE  "begin_ns <= end_ns"
#define CALIBRATION_RULE                                                                                               \
  "flops > 0 AND memory_bandwidth > 0 AND link_bandwidth > 0 AND launch_ns <= 1000000000"                              \
  " AND link_latency_ns <= 1000000000 AND memory_bytes <= 1125899906842624 AND context_bytes <= 1125899906842624"      \
  " AND kernel_bytes <= 1073741824"                                                                                    \
  " AND (cores = 0 OR cores BETWEEN 2 AND 256) AND interference <= 100 AND resize_ns <= 1000000000"
#define TIMING_RULE "workspace_bytes <= 1125899906842624 AND part < 3 AND threads <= 256"

/* Numbers of runs, steps and the like count from 1. Foreign keys with ON DELETE CASCADE: deleting a run by hand takes
 * all of it. Rows of steps are by far the most (2N per strategy), so they carry numbers only; the words are in route.
 */
#define NOW           "created TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%S', 'now'))"
#define FROM_1(name)  name " INTEGER NOT NULL CHECK (" name " > 0)"
#define OF_RUN        FROM_1("run_id") " REFERENCES runs(id) ON DELETE CASCADE"
#define OF_RESULT     FROM_1("run_id") ", result INTEGER NOT NULL"
#define TO_RESULT     ", FOREIGN KEY (run_id, result) REFERENCES results(run_id, result) ON DELETE CASCADE"
#define ROWS(type, c) .row_bytes = sizeof(type), .columns = c, .n_columns = COUNT(c)

const sn__table sn__devices = {.name = "devices",
                               .keys = "id INTEGER PRIMARY KEY CHECK (id > 0)",
                               .constraint = "UNIQUE (name, memory_bytes, memory_nominal)",
                               .owners = {"id"},
                               ROWS(sn_run, device_columns)};
const sn__table sn__runs = {.name = "runs",
                            .keys = "id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0), " NOW
                                    ", device_id INTEGER NOT NULL REFERENCES devices(id)",
                            .owners = {"id", "device_id"},
                            ROWS(sn_run, run_columns)};
const sn__table sn__results = {.name = "results",
                               .keys = OF_RUN ", " FROM_1("result"),
                               .constraint = "PRIMARY KEY (run_id, result)",
                               .owners = {"run_id"},
                               .counter = "result",
                               .rule = RESULT_RULE,
                               .obeys = result_obeys,
                               ROWS(sn_result, result_columns)};
const sn__table sn__route = {.name = "route",
                             .keys = OF_RUN ", graph INTEGER NOT NULL, " FROM_1("step"),
                             .constraint = "PRIMARY KEY (run_id, graph, step)",
                             .owners = {"run_id", "graph"},
                             .counter = "step",
                             ROWS(sn_step_row, route_columns)};
const sn__table sn__steps = {.name = "steps",
                             .keys = OF_RESULT ", " FROM_1("step"),
                             .constraint = "PRIMARY KEY (run_id, result, step)" TO_RESULT,
                             .owners = {"run_id", "result"},
                             .counter = "step",
                             .rule = STEP_RULE,
                             .obeys = step_obeys,
                             ROWS(sn_step_row, step_columns)};
const sn__table sn__peaks = {.name = "peaks",
                             .keys = OF_RESULT ", " FROM_1("place"),
                             .constraint = "PRIMARY KEY (run_id, result, place)" TO_RESULT,
                             .owners = {"run_id", "result"},
                             .counter = "place",
                             ROWS(sn_peak_row, peak_columns)};

#define LIST_OF_RUN .keys = OF_RUN ", " FROM_1("place"), .constraint = "PRIMARY KEY (run_id, place)"
const sn__table sn__tensors = {
    .name = "tensors", LIST_OF_RUN, .owners = {"run_id"}, .counter = "place", ROWS(sn_tensor_row, tensor_columns)};
const sn__table sn__failures = {
    .name = "failures", LIST_OF_RUN, .owners = {"run_id"}, .counter = "place", ROWS(sn_failure, failure_columns)};
const sn__table sn__origins = {
    .name = "origins", LIST_OF_RUN, .owners = {"run_id"}, .counter = "place", ROWS(sn_origin, origin_columns)};

const sn__table sn__calibrations = {.name = "calibrations",
                                    .keys = "id INTEGER PRIMARY KEY CHECK (id > 0), " NOW,
                                    .constraint = "UNIQUE (name, backend, hardware, libraries)",
                                    .owners = {"id"},
                                    .rule = CALIBRATION_RULE,
                                    .obeys = calibration_obeys,
                                    ROWS(sn_calibration, calibration_columns)};
const sn__table sn__timings = {
    .name = "timings",
    .keys = FROM_1("calibration_id") " REFERENCES calibrations(id) ON DELETE CASCADE, " FROM_1("place"),
    .constraint = "PRIMARY KEY (calibration_id, place)",
    .owners = {"calibration_id"},
    .counter = "place",
    .rule = TIMING_RULE,
    .obeys = timing_obeys,
    ROWS(sn_timing, timing_columns)};

/* Points are written in whatever order they are finished, and read in theirs, where some may be missing. */
const sn__table sn__points = {.name = "points",
                              .keys = FROM_1("sweep_id") " REFERENCES sweeps(id) ON DELETE CASCADE",
                              .constraint = "PRIMARY KEY (sweep_id, point)",
                              .owners = {"sweep_id"},
                              .order = "point",
                              .rule = POINT_RULE,
                              .obeys = point_obeys,
                              ROWS(sn_sweep_row, point_columns)};

const sn__table *const sn__every_table[SN__TABLES + 1] = {
    &sn__devices,      &sn__runs,    &sn__results,  &sn__route,   &sn__steps,  &sn__peaks, &sn__tensors,
    &sn__calibrations, &sn__timings, &sn__failures, &sn__origins, &sn__points, NULL};
