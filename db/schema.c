/* Schema: what is in the file, and how a file comes to have it. docs/store.md describes it for people who query.
 *
 * user_version counts the migrations a file has had, application_id says that it is ours. Both are read before anything
 * is written, so another program's database is left as it was. Creating a file is migrating it from version 0, and then
 * putting in the CHECKs that tables of older files do not have (checks.c). */
#include "db/store_internal.h"

/* Rows of steps are by far the most (2N per strategy), so they carry numbers only and no row id of their own; the words
 * are in route. Foreign keys with ON DELETE CASCADE: deleting a run by hand takes all of it. */
static const char version_1[] =
    "CREATE TABLE devices("
    "  id INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL,"
    "  memory_bytes INTEGER NOT NULL,"
    "  memory_nominal INTEGER NOT NULL CHECK (memory_nominal IN (0, 1)),"
    "  UNIQUE (name, memory_bytes, memory_nominal)) STRICT;"

    "CREATE TABLE runs("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  created TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%S', 'now')),"
    "  version TEXT NOT NULL,"
    "  net TEXT NOT NULL,"
    "  batch INTEGER NOT NULL,"
    "  image_height INTEGER NOT NULL,"
    "  image_width INTEGER NOT NULL,"
    "  pool_limit_bytes INTEGER NOT NULL,"
    "  device_id INTEGER NOT NULL REFERENCES devices(id),"
    "  workspace TEXT NOT NULL,"
    "  external TEXT NOT NULL,"
    "  allocator TEXT NOT NULL,"
    "  shared_link INTEGER NOT NULL CHECK (shared_link IN (0, 1)),"
    "  layers INTEGER NOT NULL,"
    "  n_steps INTEGER NOT NULL,"
    "  parameters INTEGER NOT NULL,"
    "  macs INTEGER NOT NULL,"
    "  n_results INTEGER NOT NULL,"
    "  n_tensors INTEGER NOT NULL,"
    "  has_tensors INTEGER NOT NULL CHECK (has_tensors IN (0, 1))) STRICT;"
    "CREATE INDEX runs_device ON runs(device_id);"

    "CREATE TABLE results("
    "  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"
    "  result INTEGER NOT NULL,"
    "  strategy TEXT NOT NULL,"
    "  fits INTEGER NOT NULL CHECK (fits IN (0, 1)),"
    "  tensor_count INTEGER NOT NULL,"
    "  peak_tensor_bytes INTEGER NOT NULL,"
    "  peak_step INTEGER NOT NULL,"
    "  peak_layer TEXT NOT NULL,"
    "  peak_pass TEXT NOT NULL,"
    "  live_tensors_at_peak INTEGER NOT NULL,"
    "  max_live_tensors INTEGER NOT NULL,"
    "  peak_device_bytes INTEGER NOT NULL,"
    "  context_bytes INTEGER NOT NULL,"
    "  parameter_bytes INTEGER NOT NULL,"
    "  parameter_gradient_bytes INTEGER NOT NULL,"
    "  optimizer_state_bytes INTEGER NOT NULL,"
    "  auxiliary_bytes INTEGER NOT NULL,"
    "  input_batch_bytes INTEGER NOT NULL,"
    "  label_bytes INTEGER NOT NULL,"
    "  pool_bytes INTEGER NOT NULL,"
    "  pool_largest_hole INTEGER NOT NULL,"
    "  pool_fragmentation REAL NOT NULL,"
    "  workspace_peak_bytes INTEGER NOT NULL,"
    "  offload_bytes INTEGER NOT NULL,"
    "  prefetch_bytes INTEGER NOT NULL,"
    "  external_bytes INTEGER NOT NULL,"
    "  cache_hits INTEGER NOT NULL,"
    "  cache_misses INTEGER NOT NULL,"
    "  evictions INTEGER NOT NULL,"
    "  recomputed_layers INTEGER NOT NULL,"
    "  iteration_ns INTEGER NOT NULL,"
    "  compute_ns INTEGER NOT NULL,"
    "  stall_ns INTEGER NOT NULL,"
    "  allocation_ns INTEGER NOT NULL,"
    "  images_per_second REAL NOT NULL,"
    "  instructions INTEGER NOT NULL,"
    "  events INTEGER NOT NULL,"
    "  n_steps INTEGER NOT NULL,"
    "  n_peak INTEGER NOT NULL,"
    "  has_steps INTEGER NOT NULL CHECK (has_steps IN (0, 1)),"
    "  has_peak INTEGER NOT NULL CHECK (has_peak IN (0, 1)),"
    "  PRIMARY KEY (run_id, result)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE route("
    "  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"
    "  step INTEGER NOT NULL,"
    "  layer TEXT NOT NULL,"
    "  op TEXT NOT NULL,"
    "  pass TEXT NOT NULL,"
    "  PRIMARY KEY (run_id, step)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE steps("
    "  run_id INTEGER NOT NULL,"
    "  result INTEGER NOT NULL,"
    "  step INTEGER NOT NULL,"
    "  tensor_bytes INTEGER NOT NULL,"
    "  live_tensors INTEGER NOT NULL,"
    "  workspace_bytes INTEGER NOT NULL,"
    "  device_bytes INTEGER NOT NULL,"
    "  begin_ns INTEGER NOT NULL,"
    "  end_ns INTEGER NOT NULL,"
    "  PRIMARY KEY (run_id, result, step),"
    "  FOREIGN KEY (run_id, result) REFERENCES results(run_id, result) ON DELETE CASCADE) STRICT, WITHOUT ROWID;"

    "CREATE TABLE peaks("
    "  run_id INTEGER NOT NULL,"
    "  result INTEGER NOT NULL,"
    "  place INTEGER NOT NULL,"
    "  tensor TEXT NOT NULL,"
    "  producer TEXT NOT NULL,"
    "  bytes INTEGER NOT NULL,"
    "  since_step INTEGER NOT NULL,"
    "  next_step INTEGER NOT NULL,"
    "  advice TEXT NOT NULL,"
    "  PRIMARY KEY (run_id, result, place),"
    "  FOREIGN KEY (run_id, result) REFERENCES results(run_id, result) ON DELETE CASCADE) STRICT, WITHOUT ROWID;"

    "CREATE TABLE tensors("
    "  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"
    "  place INTEGER NOT NULL,"
    "  tensor_id INTEGER NOT NULL,"
    "  name TEXT NOT NULL,"
    "  kind TEXT NOT NULL,"
    "  layer TEXT NOT NULL,"
    "  bytes INTEGER NOT NULL,"
    "  PRIMARY KEY (run_id, place)) STRICT, WITHOUT ROWID;"

    "CREATE VIEW summary AS"
    "  SELECT run_id AS run, created, net, batch, devices.name AS gpu, memory_bytes / 1048576.0 AS memory_mib, "
    "strategy,"
    "    fits, peak_device_bytes / 1048576.0 AS peak_device_mib, peak_tensor_bytes / 1048576.0 AS peak_tensor_mib,"
    "    peak_step, peak_layer, peak_pass, live_tensors_at_peak, offload_bytes / 1048576.0 AS offload_mib,"
    "    prefetch_bytes / 1048576.0 AS prefetch_mib, recomputed_layers, iteration_ns / 1e6 AS iteration_ms,"
    "    stall_ns / 1e6 AS stall_ms, images_per_second"
    "  FROM runs JOIN devices ON devices.id = device_id JOIN results ON run_id = runs.id;"

    "CREATE VIEW step_curve AS"
    "  SELECT steps.run_id AS run, strategy, step, layer, op, pass, tensor_bytes / 1048576.0 AS tensor_mib,"
    "    live_tensors, workspace_bytes / 1048576.0 AS workspace_mib, device_bytes / 1048576.0 AS device_mib,"
    "    begin_ns / 1e6 AS begin_ms, end_ns / 1e6 AS end_ms"
    "  FROM steps JOIN results USING (run_id, result) JOIN route USING (run_id, step);"

    "CREATE VIEW peak_tensors AS"
    "  SELECT peaks.run_id AS run, strategy, place, tensor, producer, bytes / 1048576.0 AS mib, since_step, next_step,"
    "    advice"
    "  FROM peaks JOIN results USING (run_id, result);";

/* Measured results beside predicted ones, and calibrations. A loss or difference that is no number is NULL. */
static const char version_2[] =
    "ALTER TABLE runs ADD COLUMN costs TEXT NOT NULL DEFAULT 'model';"
    "ALTER TABLE runs ADD COLUMN device TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE runs ADD COLUMN data TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE runs ADD COLUMN iterations INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN source TEXT NOT NULL DEFAULT 'sim';"
    "ALTER TABLE results ADD COLUMN known_ns INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN reserved_pool_bytes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN iterations INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN loss REAL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN accuracy REAL NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN out_ns INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN in_ns INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN difference REAL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN digest INTEGER NOT NULL DEFAULT 0;"

    "CREATE TABLE calibrations("
    "  id INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL,"
    "  backend TEXT NOT NULL,"
    "  hardware TEXT NOT NULL,"
    "  libraries TEXT NOT NULL,"
    "  created TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%S', 'now')),"
    "  memory_bytes INTEGER NOT NULL,"
    "  context_bytes INTEGER NOT NULL,"
    "  flops REAL NOT NULL,"
    "  memory_bandwidth REAL NOT NULL,"
    "  launch_ns INTEGER NOT NULL,"
    "  link_bandwidth REAL NOT NULL,"
    "  link_latency_ns INTEGER NOT NULL,"
    "  shared_link INTEGER NOT NULL CHECK (shared_link IN (0, 1)),"
    "  out_bandwidth REAL NOT NULL,"
    "  in_bandwidth REAL NOT NULL,"
    "  together_bandwidth REAL NOT NULL,"
    "  out_latency_ns INTEGER NOT NULL,"
    "  in_latency_ns INTEGER NOT NULL,"
    "  UNIQUE (name, backend, hardware, libraries)) STRICT;"

    "CREATE TABLE timings("
    "  calibration_id INTEGER NOT NULL REFERENCES calibrations(id) ON DELETE CASCADE,"
    "  place INTEGER NOT NULL,"
    "  shape TEXT NOT NULL,"
    "  op INTEGER NOT NULL,"
    "  pass INTEGER NOT NULL,"
    "  kernel INTEGER NOT NULL,"
    "  algo INTEGER NOT NULL,"
    "  workspace_bytes INTEGER NOT NULL,"
    "  ns INTEGER NOT NULL,"
    "  formula_ns INTEGER NOT NULL,"
    "  samples INTEGER NOT NULL,"
    "  PRIMARY KEY (calibration_id, place)) STRICT, WITHOUT ROWID;"

    "DROP VIEW summary;"
    "CREATE VIEW summary AS"
    "  SELECT run_id AS run, created, net, batch, devices.name AS gpu, memory_bytes / 1048576.0 AS memory_mib, "
    "strategy, source,"
    "    fits, peak_device_bytes / 1048576.0 AS peak_device_mib, peak_tensor_bytes / 1048576.0 AS peak_tensor_mib,"
    "    peak_step, peak_layer, peak_pass, live_tensors_at_peak, offload_bytes / 1048576.0 AS offload_mib,"
    "    prefetch_bytes / 1048576.0 AS prefetch_mib, recomputed_layers, iteration_ns / 1e6 AS iteration_ms,"
    "    stall_ns / 1e6 AS stall_ms, images_per_second, loss"
    "  FROM runs JOIN devices ON devices.id = device_id JOIN results ON run_id = runs.id;"

    "CREATE VIEW measured_times AS"
    "  SELECT calibration_id AS calibration, name, hardware, libraries, shape,"
    "    CASE pass WHEN 0 THEN 'forward' WHEN 1 THEN 'backward' ELSE 'update' END AS pass,"
    "    CASE kernel WHEN 0 THEN 'forward' WHEN 1 THEN 'backward data' WHEN 2 THEN 'backward filter' ELSE 'step' END"
    "      AS kernel,"
    "    CASE algo WHEN 0 THEN 'implicit_gemm' WHEN 1 THEN 'precomputed_gemm' WHEN 2 THEN 'gemm' WHEN 3 THEN 'fft'"
    "      WHEN 4 THEN 'fft_tiling' WHEN 5 THEN 'winograd' WHEN 6 THEN 'winograd_nonfused' ELSE '' END AS algorithm,"
    "    workspace_bytes / 1048576.0 AS workspace_mib, ns / 1e6 AS ms, formula_ns / 1e6 AS formula_ms, samples"
    "  FROM timings JOIN calibrations ON calibrations.id = calibration_id;";

/* Sweeps (db/sweep.h). A point names what it is a point of by itself, so that it can be queried without its grid; there
 * is one row per point and no more, a few hundred bytes. The two views are for people. */
static const char sweep_tables[] =
    "CREATE TABLE sweeps("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  created TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%S', 'now')),"
    "  version TEXT NOT NULL,"
    "  key INTEGER NOT NULL,"
    "  grid TEXT NOT NULL,"
    "  n_points INTEGER NOT NULL,"
    "  sessions INTEGER NOT NULL DEFAULT 0) STRICT;"

    "CREATE TABLE points("
    "  sweep_id INTEGER NOT NULL REFERENCES sweeps(id) ON DELETE CASCADE,"
    "  point INTEGER NOT NULL,"
    "  session INTEGER NOT NULL,"
    "  net TEXT NOT NULL,"
    "  gpu TEXT NOT NULL,"
    "  memory_bytes INTEGER NOT NULL,"
    "  workspace TEXT NOT NULL,"
    "  external TEXT NOT NULL,"
    "  allocator TEXT NOT NULL,"
    "  pool_limit_bytes INTEGER NOT NULL,"
    "  batch INTEGER NOT NULL,"
    "  strategy TEXT NOT NULL,"
    "  failure TEXT NOT NULL,"
    "  fits INTEGER NOT NULL CHECK (fits IN (0, 1)),"
    "  peak_device_bytes INTEGER NOT NULL,"
    "  peak_tensor_bytes INTEGER NOT NULL,"
    "  pool_bytes INTEGER NOT NULL,"
    "  workspace_peak_bytes INTEGER NOT NULL,"
    "  offload_bytes INTEGER NOT NULL,"
    "  prefetch_bytes INTEGER NOT NULL,"
    "  external_bytes INTEGER NOT NULL,"
    "  recomputed_layers INTEGER NOT NULL,"
    "  iteration_ns INTEGER NOT NULL,"
    "  stall_ns INTEGER NOT NULL,"
    "  images_per_second REAL NOT NULL,"
    "  PRIMARY KEY (sweep_id, point)) STRICT, WITHOUT ROWID;"

    "CREATE VIEW sweep_points AS"
    "  SELECT sweep_id AS sweep, point, net, gpu, memory_bytes / 1048576.0 AS memory_mib, workspace, external,"
    "    allocator, pool_limit_bytes / 1048576.0 AS pool_limit_mib, batch, strategy, failure, fits,"
    "    peak_device_bytes / 1048576.0 AS peak_device_mib, peak_tensor_bytes / 1048576.0 AS peak_tensor_mib,"
    "    pool_bytes / 1048576.0 AS pool_mib, workspace_peak_bytes / 1048576.0 AS workspace_mib,"
    "    offload_bytes / 1048576.0 AS offload_mib, prefetch_bytes / 1048576.0 AS prefetch_mib, recomputed_layers,"
    "    iteration_ns / 1e6 AS iteration_ms, stall_ns / 1e6 AS stall_ms, images_per_second"
    "  FROM points;"

    /* SQLite takes the other columns of a group with max() from the row that has it */
    "CREATE VIEW sweep_best AS"
    "  SELECT sweep_id AS sweep, net, gpu, workspace, external, allocator,"
    "    pool_limit_bytes / 1048576.0 AS pool_limit_mib, batch, strategy, max(images_per_second) AS images_per_second,"
    "    peak_device_bytes / 1048576.0 AS peak_device_mib"
    "  FROM points WHERE fits"
    "  GROUP BY sweep_id, net, gpu, workspace, external, allocator, pool_limit_bytes, batch;";

/* What sets a result's pool; step 0 where the run was made before. */
static const char pool_columns[] = "ALTER TABLE results ADD COLUMN peak_fork_bytes INTEGER NOT NULL DEFAULT 0;"
                                   "ALTER TABLE results ADD COLUMN pool_step INTEGER NOT NULL DEFAULT 0;"
                                   "ALTER TABLE results ADD COLUMN pool_layer TEXT NOT NULL DEFAULT '';"
                                   "ALTER TABLE results ADD COLUMN pool_pass TEXT NOT NULL DEFAULT '';"
                                   "ALTER TABLE results ADD COLUMN pool_cause TEXT NOT NULL DEFAULT '';"
                                   "ALTER TABLE results ADD COLUMN pool_tensor_bytes INTEGER NOT NULL DEFAULT 0;"
                                   "ALTER TABLE results ADD COLUMN pool_workspace_bytes INTEGER NOT NULL DEFAULT 0;"
                                   "ALTER TABLE results ADD COLUMN pool_hole_bytes INTEGER NOT NULL DEFAULT 0;"
                                   "ALTER TABLE results ADD COLUMN pool_bare_bytes INTEGER NOT NULL DEFAULT 0;";

/* What a network calls itself. */
static const char net_names[] = "ALTER TABLE runs ADD COLUMN net_name TEXT NOT NULL DEFAULT '';";

/* Host memory: what there is, and what a strategy takes of it. */
static const char host_memory[] =
    "ALTER TABLE runs ADD COLUMN host_memory_bytes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN host_bytes INTEGER NOT NULL DEFAULT 0;"
    "UPDATE results SET host_bytes = external_bytes WHERE run_id IN (SELECT id FROM runs WHERE external = 'host');";

/* Names of runs, strategies without a result, how far iterations scatter, what a measured iteration did
 * (sim/play/recording.h), and more axes of sweeps. */
static const char names_and_failures[] =
    "ALTER TABLE runs ADD COLUMN name TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE runs ADD COLUMN warmup INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE runs ADD COLUMN processors INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE runs ADD COLUMN load REAL NOT NULL DEFAULT 0;"
    "ALTER TABLE runs ADD COLUMN n_failures INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN fastest_ns INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN slowest_ns INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN recording BLOB;"
    "CREATE INDEX runs_name ON runs(name);"

    "CREATE TABLE failures("
    "  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"
    "  place INTEGER NOT NULL,"
    "  strategy TEXT NOT NULL,"
    "  reason TEXT NOT NULL,"
    "  PRIMARY KEY (run_id, place)) STRICT, WITHOUT ROWID;"

    "ALTER TABLE points ADD COLUMN image INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE points ADD COLUMN shared_link INTEGER NOT NULL DEFAULT 0 CHECK (shared_link IN (0, 1));"
    "DROP VIEW sweep_points;"
    "CREATE VIEW sweep_points AS"
    "  SELECT sweep_id AS sweep, point, net, image, gpu, memory_bytes / 1048576.0 AS memory_mib, workspace, external,"
    "    shared_link, allocator, pool_limit_bytes / 1048576.0 AS pool_limit_mib, batch, strategy, failure, fits,"
    "    peak_device_bytes / 1048576.0 AS peak_device_mib, peak_tensor_bytes / 1048576.0 AS peak_tensor_mib,"
    "    pool_bytes / 1048576.0 AS pool_mib, workspace_peak_bytes / 1048576.0 AS workspace_mib,"
    "    offload_bytes / 1048576.0 AS offload_mib, prefetch_bytes / 1048576.0 AS prefetch_mib, recomputed_layers,"
    "    iteration_ns / 1e6 AS iteration_ms, stall_ns / 1e6 AS stall_ms, images_per_second"
    "  FROM points;"
    "DROP VIEW sweep_best;"
    "CREATE VIEW sweep_best AS"
    "  SELECT sweep_id AS sweep, net, image, gpu, memory_bytes / 1048576.0 AS memory_mib, workspace, external,"
    "    shared_link, allocator, pool_limit_bytes / 1048576.0 AS pool_limit_mib, batch, strategy,"
    "    max(images_per_second) AS images_per_second, peak_device_bytes / 1048576.0 AS peak_device_mib"
    "  FROM points WHERE fits"
    "  GROUP BY sweep_id, net, image, gpu, memory_bytes, workspace, external, shared_link, allocator,"
    "    pool_limit_bytes, batch;";

/* The least memory with which a strategy runs, beside what its plan takes; 0 where it is not known. */
static const char least_memory[] = "ALTER TABLE results ADD COLUMN least_device_bytes INTEGER NOT NULL DEFAULT 0;"
                                   "ALTER TABLE points ADD COLUMN least_device_bytes INTEGER NOT NULL DEFAULT 0;";

/* Where addresses come from, and whose iteration it is. Before there was only first fit; what the largest load was then
 * is in the share of the pool that it did not reach. */
static const char placements[] =
    "ALTER TABLE results ADD COLUMN placement TEXT NOT NULL DEFAULT 'first_fit';"
    "ALTER TABLE results ADD COLUMN dialect TEXT NOT NULL DEFAULT 'superneurons';"
    "ALTER TABLE results ADD COLUMN step_order TEXT NOT NULL DEFAULT 'route';"
    "ALTER TABLE results ADD COLUMN largest_load_bytes INTEGER NOT NULL DEFAULT 0;"
    "UPDATE results SET largest_load_bytes = 1024 * CAST(round((1 - pool_fragmentation)"
    "  * iif(source = 'sim', pool_bytes, reserved_pool_bytes) / 1024.0) AS INTEGER)"
    "  WHERE pool_bytes < 1125899906842624 AND reserved_pool_bytes < 1125899906842624;"
    "ALTER TABLE points ADD COLUMN placement TEXT NOT NULL DEFAULT 'first_fit';"
    "UPDATE points SET placement = '' WHERE failure <> '';"
    "DROP VIEW sweep_points;"
    "CREATE VIEW sweep_points AS"
    "  SELECT sweep_id AS sweep, point, net, image, gpu, memory_bytes / 1048576.0 AS memory_mib, workspace, external,"
    "    shared_link, allocator, pool_limit_bytes / 1048576.0 AS pool_limit_mib, batch, strategy, failure, fits,"
    "    peak_device_bytes / 1048576.0 AS peak_device_mib, peak_tensor_bytes / 1048576.0 AS peak_tensor_mib,"
    "    placement, pool_bytes / 1048576.0 AS pool_mib, workspace_peak_bytes / 1048576.0 AS workspace_mib,"
    "    offload_bytes / 1048576.0 AS offload_mib, prefetch_bytes / 1048576.0 AS prefetch_mib, recomputed_layers,"
    "    iteration_ns / 1e6 AS iteration_ms, stall_ns / 1e6 AS stall_ms, images_per_second"
    "  FROM points;";

/* Steps are those of a graph, and a run's results may be of several; what PyTorch's allocator and memory tracker say.
 */
static const char graphs[] =
    "ALTER TABLE results ADD COLUMN graph INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN allocated_bytes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN reserved_bytes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN live_parameter_bytes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN live_buffer_bytes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN live_gradient_bytes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN live_optimizer_bytes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN live_activation_bytes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN live_temporary_bytes INTEGER NOT NULL DEFAULT 0;"
    "DROP VIEW step_curve;"
    "ALTER TABLE route RENAME TO older_route;"
    "CREATE TABLE route("
    "  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"
    "  graph INTEGER NOT NULL,"
    "  step INTEGER NOT NULL,"
    "  layer TEXT NOT NULL,"
    "  op TEXT NOT NULL,"
    "  pass TEXT NOT NULL,"
    "  PRIMARY KEY (run_id, graph, step)) STRICT, WITHOUT ROWID;"
    "INSERT INTO route SELECT run_id, 0, step, layer, op, pass FROM older_route;"
    "DROP TABLE older_route;"
    "CREATE VIEW step_curve AS"
    "  SELECT steps.run_id AS run, strategy, step, layer, op, pass, tensor_bytes / 1048576.0 AS tensor_mib,"
    "    live_tensors, workspace_bytes / 1048576.0 AS workspace_mib, device_bytes / 1048576.0 AS device_mib,"
    "    begin_ns / 1e6 AS begin_ms, end_ns / 1e6 AS end_ms"
    "  FROM steps JOIN results USING (run_id, result) JOIN route USING (run_id, graph, step);";

/* The files that a run was made from. */
static const char origins[] = "ALTER TABLE runs ADD COLUMN n_origins INTEGER NOT NULL DEFAULT 0;"
                              "CREATE TABLE origins("
                              "  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"
                              "  place INTEGER NOT NULL,"
                              "  what TEXT NOT NULL,"
                              "  path TEXT NOT NULL,"
                              "  PRIMARY KEY (run_id, place)) STRICT, WITHOUT ROWID;";

/* What updates parameters; before there was only one. */
static const char optimizers[] = "ALTER TABLE runs ADD COLUMN optimizer TEXT NOT NULL DEFAULT 'momentum';";

/* What an iteration is for: so many batches an update, or none. Before, all were of one. */
static const char iterations[] =
    "ALTER TABLE runs ADD COLUMN accumulate INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE runs ADD COLUMN inference INTEGER NOT NULL DEFAULT 0 CHECK (inference IN (0, 1));";

/* What is known of operations that run side by side. */
static const char corun_columns[] = "ALTER TABLE results ADD COLUMN corun_policy TEXT NOT NULL DEFAULT '';"
                                    "ALTER TABLE results ADD COLUMN corun_sharing TEXT NOT NULL DEFAULT '';"
                                    "ALTER TABLE results ADD COLUMN corun_interval TEXT NOT NULL DEFAULT '';"
                                    "ALTER TABLE results ADD COLUMN corun_budget_bytes INTEGER NOT NULL DEFAULT 0;"
                                    "ALTER TABLE results ADD COLUMN corun_cores INTEGER NOT NULL DEFAULT 0;"
                                    "ALTER TABLE results ADD COLUMN corun_slots INTEGER NOT NULL DEFAULT 0;"
                                    "ALTER TABLE results ADD COLUMN corun_ops INTEGER NOT NULL DEFAULT 0;"
                                    "ALTER TABLE results ADD COLUMN corun_chain_ops INTEGER NOT NULL DEFAULT 0;"
                                    "ALTER TABLE results ADD COLUMN corun_serial_ns INTEGER NOT NULL DEFAULT 0;"
                                    "ALTER TABLE results ADD COLUMN corun_chain_ns INTEGER NOT NULL DEFAULT 0;"
                                    "ALTER TABLE results ADD COLUMN corun_area_ns INTEGER NOT NULL DEFAULT 0;"
                                    "ALTER TABLE results ADD COLUMN corun_average REAL NOT NULL DEFAULT 0;"
                                    "ALTER TABLE results ADD COLUMN corun_max INTEGER NOT NULL DEFAULT 0;"
                                    "ALTER TABLE results ADD COLUMN corun_added_waits INTEGER NOT NULL DEFAULT 0;"
                                    "ALTER TABLE results ADD COLUMN corun_profile_steps INTEGER NOT NULL DEFAULT 0;";

/* The same of the points of sweeps. */
static const char swept_iterations[] =
    "ALTER TABLE points ADD COLUMN optimizer TEXT NOT NULL DEFAULT 'momentum';"
    "ALTER TABLE points ADD COLUMN accumulate INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE points ADD COLUMN inference INTEGER NOT NULL DEFAULT 0 CHECK (inference IN (0, 1));"
    "DROP VIEW sweep_points;"
    "CREATE VIEW sweep_points AS"
    "  SELECT sweep_id AS sweep, point, net, image, gpu, memory_bytes / 1048576.0 AS memory_mib, workspace, external,"
    "    shared_link, allocator, optimizer, accumulate, inference, pool_limit_bytes / 1048576.0 AS pool_limit_mib,"
    "    batch, strategy, failure, fits,"
    "    peak_device_bytes / 1048576.0 AS peak_device_mib, peak_tensor_bytes / 1048576.0 AS peak_tensor_mib,"
    "    placement, pool_bytes / 1048576.0 AS pool_mib, workspace_peak_bytes / 1048576.0 AS workspace_mib,"
    "    offload_bytes / 1048576.0 AS offload_mib, prefetch_bytes / 1048576.0 AS prefetch_mib, recomputed_layers,"
    "    iteration_ns / 1e6 AS iteration_ms, stall_ns / 1e6 AS stall_ms, images_per_second"
    "  FROM points;"
    "DROP VIEW sweep_best;"
    "CREATE VIEW sweep_best AS"
    "  SELECT sweep_id AS sweep, net, image, gpu, memory_bytes / 1048576.0 AS memory_mib, workspace, external,"
    "    shared_link, allocator, optimizer, accumulate, inference, pool_limit_bytes / 1048576.0 AS pool_limit_mib,"
    "    batch, strategy,"
    "    max(images_per_second) AS images_per_second, peak_device_bytes / 1048576.0 AS peak_device_mib"
    "  FROM points WHERE fits"
    "  GROUP BY sweep_id, net, image, gpu, memory_bytes, workspace, external, shared_link, allocator, optimizer,"
    "    accumulate, inference, pool_limit_bytes, batch;";

/* In how many bytes what is held; before, four. */
static const char precisions[] = "ALTER TABLE runs ADD COLUMN precision TEXT NOT NULL DEFAULT 'fp32';";

/* What was measured on teams of a machine's cores. Before, all timings were of whole steps on all of it. */
static const char teams[] =
    "ALTER TABLE calibrations ADD COLUMN cores INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE calibrations ADD COLUMN interference REAL NOT NULL DEFAULT 0;"
    "ALTER TABLE timings ADD COLUMN part INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE timings ADD COLUMN threads INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE results ADD COLUMN corun_measured_ops INTEGER NOT NULL DEFAULT 0;"
    "DROP VIEW measured_times;"
    "CREATE VIEW measured_times AS"
    "  SELECT calibration_id AS calibration, name, hardware, libraries, shape,"
    "    CASE pass WHEN 0 THEN 'forward' WHEN 1 THEN 'backward' ELSE 'update' END AS pass,"
    "    CASE kernel WHEN 0 THEN 'forward' WHEN 1 THEN 'backward data' WHEN 2 THEN 'backward filter' ELSE 'step' END"
    "      AS kernel,"
    "    CASE algo WHEN 0 THEN 'implicit_gemm' WHEN 1 THEN 'precomputed_gemm' WHEN 2 THEN 'gemm' WHEN 3 THEN 'fft'"
    "      WHEN 4 THEN 'fft_tiling' WHEN 5 THEN 'winograd' WHEN 6 THEN 'winograd_nonfused' ELSE '' END AS algorithm,"
    "    CASE part WHEN 1 THEN 'filter' WHEN 2 THEN 'data' ELSE 'whole' END AS part, threads,"
    "    workspace_bytes / 1048576.0 AS workspace_mib, ns / 1e6 AS ms, formula_ns / 1e6 AS formula_ms, samples"
    "  FROM timings JOIN calibrations ON calibrations.id = calibration_id;";

/* How much copies and computation slow each other on a CPU; 0: not measured. */
static const char speeds[] = "ALTER TABLE calibrations ADD COLUMN compute_speed REAL NOT NULL DEFAULT 0;"
                             "ALTER TABLE calibrations ADD COLUMN copy_speed REAL NOT NULL DEFAULT 0;";

/* The same of the points of sweeps, and what no placement can take less than. */
static const char swept_precisions[] =
    "ALTER TABLE points ADD COLUMN precision TEXT NOT NULL DEFAULT 'fp32';"
    "ALTER TABLE points ADD COLUMN largest_load_bytes INTEGER NOT NULL DEFAULT 0;"
    "DROP VIEW sweep_points;"
    "CREATE VIEW sweep_points AS"
    "  SELECT sweep_id AS sweep, point, net, image, gpu, memory_bytes / 1048576.0 AS memory_mib, workspace, external,"
    "    shared_link, allocator, optimizer, accumulate, inference, precision,"
    "    pool_limit_bytes / 1048576.0 AS pool_limit_mib,"
    "    batch, strategy, failure, fits,"
    "    peak_device_bytes / 1048576.0 AS peak_device_mib, peak_tensor_bytes / 1048576.0 AS peak_tensor_mib,"
    "    placement, pool_bytes / 1048576.0 AS pool_mib,"
    "    largest_load_bytes / 1048576.0 AS largest_load_mib, workspace_peak_bytes / 1048576.0 AS workspace_mib,"
    "    offload_bytes / 1048576.0 AS offload_mib, prefetch_bytes / 1048576.0 AS prefetch_mib, recomputed_layers,"
    "    iteration_ns / 1e6 AS iteration_ms, stall_ns / 1e6 AS stall_ms, images_per_second"
    "  FROM points;"
    "DROP VIEW sweep_best;"
    "CREATE VIEW sweep_best AS"
    "  SELECT sweep_id AS sweep, net, image, gpu, memory_bytes / 1048576.0 AS memory_mib, workspace, external,"
    "    shared_link, allocator, optimizer, accumulate, inference, precision,"
    "    pool_limit_bytes / 1048576.0 AS pool_limit_mib,"
    "    batch, strategy,"
    "    max(images_per_second) AS images_per_second, peak_device_bytes / 1048576.0 AS peak_device_mib"
    "  FROM points WHERE fits"
    "  GROUP BY sweep_id, net, image, gpu, memory_bytes, workspace, external, shared_link, allocator, optimizer,"
    "    accumulate, inference, precision, pool_limit_bytes, batch;";

/* What it takes to go on with another team; 0: not measured. */
static const char resizing[] = "ALTER TABLE calibrations ADD COLUMN resize_ns REAL NOT NULL DEFAULT 0;";

/* Layers that are not trained; before, none were frozen. */
static const char freezes[] = "ALTER TABLE runs ADD COLUMN freeze TEXT NOT NULL DEFAULT '';";

/* How far the samples of a timing are apart; 0: nobody kept it. */
static const char spreads[] = "ALTER TABLE timings ADD COLUMN spread_ns INTEGER NOT NULL DEFAULT 0;";

/* What the kernels of a shape take; before, those of one net were in the context of all. */
static const char kernels[] = "ALTER TABLE calibrations ADD COLUMN kernel_bytes INTEGER NOT NULL DEFAULT 0;";

/* Of volumes; before there were images alone. */
static const char volumes[] = "ALTER TABLE runs ADD COLUMN image_depth INTEGER NOT NULL DEFAULT 0;";

/* Of runs that send tensors to a disk; before, none did. */
static const char answers[] = "ALTER TABLE runs ADD COLUMN answer TEXT NOT NULL DEFAULT '';";

static const char disks[] = "ALTER TABLE runs ADD COLUMN disk_bandwidth REAL NOT NULL DEFAULT 0;";

static const char *const migrations[] = {
    version_1,        version_2,  sweep_tables, pool_columns, net_names,        host_memory, names_and_failures,
    least_memory,     placements, graphs,       origins,      optimizers,       iterations,  corun_columns,
    swept_iterations, teams,      speeds,       precisions,   swept_precisions, resizing,    freezes,
    spreads,          kernels,    volumes,      disks,        answers};

sn__schema sn__schema_current(void) {
  return (sn__schema){migrations, sizeof migrations / sizeof migrations[0]};
}

typedef struct stamp {
  int64_t application, version, objects;
} stamp;

static sn_status read_stamp(sn_store *store, stamp *out, sn_err *err) {
  sqlite3_stmt *statement =
      sn__store_prepare(store,
                        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)"
                        " FROM pragma_application_id, pragma_user_version",
                        err);
  if (!statement) return err->code;
  int rc = sqlite3_step(statement);
  *out = (stamp){sqlite3_column_int64(statement, 0), sqlite3_column_int64(statement, 1),
                 sqlite3_column_int64(statement, 2)};
  if (rc != SQLITE_ROW) sn__store_fail(store, rc, err);
  sqlite3_finalize(statement);
  return err->code;
}

static bool is_empty(const stamp *found) {
  return found->application == 0 && found->version == 0 && found->objects == 0;
}

static sn_status check_stamp(const sn_store *store, const stamp *found, const sn__schema *schema, sn_err *err) {
  if (!is_empty(found) && (found->application != SN__APPLICATION_ID || found->version < 1))
    return sn_fail(err, SN_BAD_INPUT,
                   "%.300s: is another program's SQLite database, which snsim does not touch; choose another file with "
                   "--db FILE",
                   store->path);
  if (found->version > schema->count)
    return sn_fail(err, SN_BAD_INPUT,
                   "%.300s: was written by a newer snsim (schema %lld, this program knows %d); install that snsim, or "
                   "choose another file with --db FILE",
                   store->path, (long long)found->version, schema->count);
  return SN_OK;
}

static sn_status apply(sn_store *store, const stamp *from, const sn__schema *schema, sn_err *err) {
  bool new_file = from->version == 0 && schema->steps == migrations; /* a test's own schema has other tables */
  for (int64_t i = from->version; i < schema->count && err->code == SN_OK; i++)
    (new_file ? sn__empty_migrate : sn__store_exec)(store, schema->steps[i], err);
  if (err->code != SN_OK) return err->code;
  if (new_file && sn__checks_add(store, err) != SN_OK) return err->code;
  char sql[96];
  sqlite3_snprintf(sizeof sql, sql, "PRAGMA application_id = %d; PRAGMA user_version = %d;", SN__APPLICATION_ID,
                   schema->count);
  return sn__store_exec(store, sql, err);
}

/* The stamp is read again inside the transaction: another process may have migrated meanwhile. */
static sn_status migrate(sn_store *store, const sn__schema *schema, sn_err *err) {
  stamp found = {0};
  if (sn__store_begin(store, SN__WRITE, err) != SN_OK) return err->code;
  if (read_stamp(store, &found, err) == SN_OK && check_stamp(store, &found, schema, err) == SN_OK)
    apply(store, &found, schema, err);
  return sn__store_end(store, err);
}

sn_status sn__schema_ready(sn_store *store, sn__mode mode, const sn__schema *schema, sn_err *err) {
  stamp found = {0};
  if (read_stamp(store, &found, err) != SN_OK || check_stamp(store, &found, schema, err) != SN_OK) return err->code;
  if (mode == SN__READ && is_empty(&found)) return sn__store_no_runs(store->path, err);
  return found.version == schema->count ? SN_OK : migrate(store, schema, err);
}
