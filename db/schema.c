/* Schema: what is in the file. docs/store.md describes it for people who query.
 *
 * Tables are made of tables.c, so that a new member is a line there; here is the number of the schema, which a change
 * raises once there was a release. application_id says that a file
 * is ours and user_version which schema it has; both are read before anything is written, so another program's
 * database is left as it was. */
#include "db/store_internal.h"

#include <string.h>

/* "snsm" until there was a release, with up to 26 versions. */
enum { SCHEMA = 1, OLDER_APPLICATION_ID = 0x736e736d };

/* ---- tables ---- */

static void add_type(sqlite3_str *sql, sn__kind kind) {
  static const char *const types[] = {[SN__TEXT] = "TEXT NOT NULL",
                                      [SN__BOOL] = "INTEGER NOT NULL",
                                      [SN__U32] = "INTEGER NOT NULL",
                                      [SN__U64] = "INTEGER NOT NULL",
                                      [SN__NS] = "INTEGER NOT NULL",
                                      [SN__I64] = "INTEGER NOT NULL",
                                      [SN__REAL] = "REAL", /* NaN is NULL */
                                      [SN__AMOUNT] = "REAL NOT NULL",
                                      [SN__SHARE] = "REAL NOT NULL",
                                      [SN__BLOB] = "BLOB",
                                      [SN__PRESENT] = "INTEGER NOT NULL"};
  sqlite3_str_appendall(sql, types[kind]);
}

/* Keys ahead of all columns; rows that have no number of their own are kept in the order of their key. */
static void add_table(sqlite3_str *sql, const sn__table *table) {
  sqlite3_str_appendf(sql, "CREATE TABLE %s(%s", table->name, table->keys);
  for (unsigned i = 0; i < table->n_columns; i++) {
    const sn__column *column = &table->columns[i];
    sqlite3_str_appendf(sql, ", %s ", column->name);
    add_type(sql, column->kind);
    sn__check_add(sql, column);
  }
  if (table->rule) sqlite3_str_appendf(sql, ", CHECK (%s)", table->rule);
  if (table->constraint) sqlite3_str_appendf(sql, ", %s", table->constraint);
  bool has_number = strstr(table->keys, "PRIMARY KEY") != NULL;
  sqlite3_str_appendf(sql, ") STRICT%s;", has_number ? "" : ", WITHOUT ROWID");
}

/* A sweep's row is written by hand (sweep.c); its key is a digest of the grid, all 64 bits of it. */
static const char sweeps[] = "CREATE TABLE sweeps("
                             "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
                             "  created TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%S', 'now')),"
                             "  version TEXT NOT NULL,"
                             "  key INTEGER NOT NULL,"
                             "  grid TEXT NOT NULL,"
                             "  n_points INTEGER NOT NULL CHECK (n_points BETWEEN 0 AND 4294967295),"
                             "  sessions INTEGER NOT NULL DEFAULT 0 CHECK (sessions BETWEEN 0 AND 4294967295)) STRICT;"
                             "CREATE INDEX runs_device ON runs(device_id);"
                             "CREATE INDEX runs_name ON runs(name);";

/* ---- views, for people ---- */

static const char views[] =
    "CREATE VIEW summary AS"
    "  SELECT run_id AS run, created, net, batch, devices.name AS gpu, memory_bytes / 1048576.0 AS memory_mib, "
    "strategy, source,"
    "    fits, peak_device_bytes / 1048576.0 AS peak_device_mib, peak_tensor_bytes / 1048576.0 AS peak_tensor_mib,"
    "    peak_step, peak_layer, peak_pass, live_tensors_at_peak, offload_bytes / 1048576.0 AS offload_mib,"
    "    prefetch_bytes / 1048576.0 AS prefetch_mib, recomputed_layers, iteration_ns / 1e6 AS iteration_ms,"
    "    stall_ns / 1e6 AS stall_ms, images_per_second, loss"
    "  FROM runs JOIN devices ON devices.id = device_id JOIN results ON run_id = runs.id;"

    "CREATE VIEW step_curve AS"
    "  SELECT steps.run_id AS run, strategy, step, layer, op, pass, tensor_bytes / 1048576.0 AS tensor_mib,"
    "    live_tensors, workspace_bytes / 1048576.0 AS workspace_mib, device_bytes / 1048576.0 AS device_mib,"
    "    begin_ns / 1e6 AS begin_ms, end_ns / 1e6 AS end_ms"
    "  FROM steps JOIN results USING (run_id, result) JOIN route USING (run_id, graph, step);"

    "CREATE VIEW peak_tensors AS"
    "  SELECT peaks.run_id AS run, strategy, place, tensor, producer, bytes / 1048576.0 AS mib, since_step, next_step,"
    "    advice"
    "  FROM peaks JOIN results USING (run_id, result);"

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

/* A column as people want it: bytes in MiB, ns in ms. */
static void add_shown(sqlite3_str *sql, const char *name) {
  const char *bytes = strstr(name, "_bytes"), *ns = strstr(name, "_ns");
  if (bytes && !bytes[6])
    sqlite3_str_appendf(sql, ", %s / 1048576.0 AS %.*s_mib", name, (int)(bytes - name), name);
  else if (ns && !ns[3])
    sqlite3_str_appendf(sql, ", %s / 1e6 AS %.*s_ms", name, (int)(ns - name), name);
  else
    sqlite3_str_appendf(sql, ", %s", name);
}

/* All points; and of each question the fastest that fits: SQLite takes the other columns of a group with max() from the
 * row that has it. */
static void add_sweep_views(sqlite3_str *sql) {
  const sn__column *columns = sn__points.columns;
  sqlite3_str_appendall(sql, "CREATE VIEW sweep_points AS SELECT sweep_id AS sweep");
  for (unsigned i = 0; i < sn__points.n_columns; i++) add_shown(sql, columns[i].name);
  sqlite3_str_appendall(sql, " FROM points; CREATE VIEW sweep_best AS SELECT sweep_id AS sweep");
  for (unsigned i = 0; i < sn__points.n_columns; i++)
    if (columns[i].asked) add_shown(sql, columns[i].name);
  sqlite3_str_appendall(sql, ", strategy, max(images_per_second) AS images_per_second, peak_device_bytes / 1048576.0 "
                             "AS peak_device_mib FROM points WHERE fits GROUP BY sweep_id");
  for (unsigned i = 0; i < sn__points.n_columns; i++)
    if (columns[i].asked) sqlite3_str_appendf(sql, ", %s", columns[i].name);
  sqlite3_str_appendall(sql, ";");
}

/* ---- a file ---- */

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

static sn_status check_stamp(const sn_store *store, const stamp *found, sn_err *err) {
  if (is_empty(found)) return SN_OK;
  if (found->application == OLDER_APPLICATION_ID)
    return sn_fail(
        err, SN_BAD_INPUT,
        "%.300s: was written before the first release, with other tables (schema %lld); the program of commit "
        "b2191de reads it, or choose another file with --db FILE",
        store->path, (long long)found->version);
  if (found->application != SN__APPLICATION_ID || found->version < 1)
    return sn_fail(err, SN_BAD_INPUT,
                   "%.300s: is another program's SQLite database, which snsim does not touch; choose another file with "
                   "--db FILE",
                   store->path);
  if (found->version > SCHEMA)
    return sn_fail(err, SN_BAD_INPUT,
                   "%.300s: was written by a newer snsim (schema %lld, this program knows %d); install that snsim, or "
                   "choose another file with --db FILE",
                   store->path, (long long)found->version, SCHEMA);
  return SN_OK;
}

static sn_status fill(sn_store *store, sn_err *err) {
  sqlite3_str *sql = sqlite3_str_new(store->db);
  for (const sn__table *const *t = sn__every_table; *t; t++) add_table(sql, *t);
  sqlite3_str_appendf(sql, "%s%s", sweeps, views);
  add_sweep_views(sql);
  sqlite3_str_appendf(sql, "PRAGMA application_id = %d; PRAGMA user_version = %d;", SN__APPLICATION_ID, SCHEMA);
  char *text = sqlite3_str_finish(sql);
  if (text)
    sn__store_exec(store, text, err);
  else
    sn_fail_memory(err);
  sqlite3_free(text);
  return err->code;
}

/* The stamp is read again inside the transaction: another process may have made the file meanwhile. */
static sn_status create(sn_store *store, sn_err *err) {
  stamp found = {0};
  if (sn__store_begin(store, SN__WRITE, err) != SN_OK) return err->code;
  if (read_stamp(store, &found, err) == SN_OK && check_stamp(store, &found, err) == SN_OK && is_empty(&found))
    fill(store, err);
  return sn__store_end(store, err);
}

sn_status sn__schema_ready(sn_store *store, sn__mode mode, sn_err *err) {
  stamp found = {0};
  if (read_stamp(store, &found, err) != SN_OK || check_stamp(store, &found, err) != SN_OK) return err->code;
  if (!is_empty(&found)) return SN_OK;
  return mode == SN__READ ? sn__store_no_runs(store->path, err) : create(store, err);
}
