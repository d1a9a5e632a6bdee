/* Store: opening and closing the file, transactions, and what SQLite's errors mean for the user.
 *
 * The order of opening matters: look at the path, open, recognise the file (schema.c), and only then change anything in
 * it (WAL). Writing waits up to a minute for other writers; in WAL mode readers and the writer do not wait for each
 * other. synchronous = FULL: a run whose put returned survives power loss too.
 *
 * Who may read but not write must not leave SQLite's -wal and -shm files behind: they would be his, and lock the owner
 * out. He reads the file alone ("immutable"), which holds all as long as nobody is writing, and looks at its time
 * afterwards to know that nobody was.
 *
 * Not here: files on network file systems, where SQLite's locks may not work. */
#include "db/store_internal.h"

#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
  PATIENCE_MS = 60000, /* with another program that writes */
  SETUP_MS = 5000,     /* with one that creates the file */
  PAUSE_MS = 25,       /* longest between two tries */
  SMALLEST = 512,      /* bytes in a page */
  LONGEST_PATH = 504   /* SQLite's own limit, with links followed: 512, less its longest ending */
};

static const char elsewhere[] = "choose another file with --db FILE; questions go without one by --no-db";

/* ---- errors ---- */

static sn_status fail_file(const char *path, const char *reason, sn_err *err) {
  return sn_fail(err, SN_BAD_FILE, "%.250s: %s; %s", path, reason, elsewhere);
}

sn_status sn__store_damaged(sn_store *store, const char *what, sn_err *err) {
  return sn_fail(
      err, SN_BAD_INPUT,
      "%.250s: is not a snsim database or is damaged (%.120s); move it away or choose another with --db FILE",
      store->path, what);
}

sn_status sn__store_no_runs(const char *path, sn_err *err) {
  return sn_fail(
      err, SN_BAD_FILE,
      "%.300s: there are no runs yet; make one with snsim --net NAME --batch N, or name another file with --db FILE",
      path);
}

/* What SQLite has to say about the failure; nothing of use where rc is ours and not SQLite's. */
static const char *reason(const sn_store *store, int rc) {
  return sqlite3_extended_errcode(store->db) == rc ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc);
}

/* "<path><ending>", a file that SQLite keeps beside the database; to be freed. */
static char *path_beside(const sn_store *store, const char *ending) {
  size_t room = strlen(store->path) + strlen(ending) + 1;
  char *path = malloc(room);
  if (path) snprintf(path, room, "%s%s", store->path, ending);
  return path;
}

/* Whether there is such a file, of more than `least` bytes; -1 asks for the file alone. */
static bool is_beside(const sn_store *store, const char *ending, off_t least) {
  char *path = path_beside(store, ending);
  struct stat found;
  bool there = path && stat(path, &found) == 0 && found.st_size > least;
  free(path);
  return there;
}

/* The ending of a file beside the database that this user may not write; NULL where there is none. */
static const char *find_locked(const sn_store *store) {
  static const char *const endings[] = {"-wal", "-shm", "-journal"};
  const char *found = NULL;
  for (size_t i = 0; !found && i < sizeof endings / sizeof endings[0]; i++) {
    char *path = path_beside(store, endings[i]);
    if (path && access(path, F_OK) == 0 && access(path, R_OK | W_OK) != 0) found = endings[i];
    free(path);
  }
  return found;
}

/* What the system does not allow: SQLite's code alone would not tell which file is meant. */
static sn_status fail_access(sn_store *store, const char *why, sn_err *err) {
  const char *locked = find_locked(store);
  if (!locked) return fail_file(store->path, why, err);
  return sn_fail(
      err, SN_BAD_FILE,
      "%.250s%s: was left by another user and cannot be written; when no program uses the database, have this "
      "file given to you (chown) or, where it is empty, removed; or %s",
      store->path, locked, elsewhere);
}

/* The system's reason where it knows one, else SQLite's. */
static sn_status fail_system(sn_store *store, int rc, sn_err *err) {
  int number = sqlite3_system_errno(store->db);
  return fail_access(store, number ? strerror(number) : reason(store, rc), err);
}

sn_status sn__store_fail(sn_store *store, int rc, sn_err *err) {
  switch (rc & 0xff) {
  case SQLITE_NOMEM:
    return sn_fail_memory(err);
  case SQLITE_NOTADB:
  case SQLITE_CORRUPT:
  case SQLITE_ERROR: /* our SQL is right, so a table is missing or another than it should be */
    return sn__store_damaged(store, reason(store, rc), err);
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return fail_file(store->path, "another program is writing to it and did not finish within a minute", err);
  case SQLITE_FULL:
    return fail_file(store->path, "the disk is full", err);
  case SQLITE_READONLY:
    return fail_access(store, "the file or its folder cannot be written", err);
  case SQLITE_PERM:
  case SQLITE_AUTH:
  case SQLITE_CANTOPEN:
  case SQLITE_PROTOCOL:
  case SQLITE_NOLFS:
  case SQLITE_IOERR:
    return fail_system(store, rc, err);
  case SQLITE_CONSTRAINT: /* of our own rows only keys that are there already, and then someone else made them */
    if (rc != SQLITE_CONSTRAINT_CHECK && rc != SQLITE_CONSTRAINT_NOTNULL && rc != SQLITE_CONSTRAINT_DATATYPE)
      return sn__store_damaged(store, reason(store, rc), err);
    return sn_fail(err, SN_BUG, "store: the run holds what no run should: %s", reason(store, rc));
  case SQLITE_TOOBIG:
    return sn_fail(err, SN_BUG, "store: the run holds a number above 2^63 - 1");
  default:
    return sn_fail(err, SN_BUG, "%.250s: SQLite: %s (code %d)", store->path, reason(store, rc), rc);
  }
}

/* ---- statements and transactions ---- */

sn_status sn__store_exec(sn_store *store, const char *sql, sn_err *err) {
  int rc = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
  return rc == SQLITE_OK ? SN_OK : sn__store_fail(store, rc, err);
}

sqlite3_stmt *sn__store_prepare(sn_store *store, const char *sql, sn_err *err) {
  sqlite3_stmt *statement = NULL;
  int rc = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
  if (rc != SQLITE_OK) sn__store_fail(store, rc, err);
  return statement;
}

sn_status sn__store_number(sn_store *store, const char *sql, int64_t *out, sn_err *err) {
  sqlite3_stmt *statement = sn__store_prepare(store, sql, err);
  if (!statement) return err->code;
  int rc = sqlite3_step(statement);
  if (rc == SQLITE_ROW)
    *out = sqlite3_column_int64(statement, 0);
  else
    sn__store_fail(store, rc, err);
  sqlite3_finalize(statement);
  return err->code;
}

sn_status sn__store_begin(sn_store *store, sn__mode mode, sn_err *err) {
  /* Where memory ran out, the ROLLBACK of the last transaction may have failed too. */
  if (!sqlite3_get_autocommit(store->db) && sn__store_exec(store, "ROLLBACK", err) != SN_OK) return err->code;
  return sn__store_exec(store, mode == SN__WRITE ? "BEGIN IMMEDIATE" : "BEGIN", err);
}

/* Whether someone has written to a file that was to be read alone: what was read is then worth nothing. */
static bool has_changed(const sn_store *store) {
  struct stat now;
  const struct stat *then = &store->alone;
  return stat(store->path, &now) != 0 || now.st_ino != then->st_ino || now.st_size != then->st_size ||
         now.st_mtim.tv_sec != then->st_mtim.tv_sec || now.st_mtim.tv_nsec != then->st_mtim.tv_nsec;
}

bool sn_store_is_there(const sn_store *store) {
  struct stat now;
  if (strcmp(store->path, ":memory:") == 0) return true;
  return stat(store->path, &now) == 0 && now.st_dev == store->opened.st_dev && now.st_ino == store->opened.st_ino;
}

sn_status sn_store_fail_gone(const sn_store *store, sn_err *err) {
  return fail_file(store->path, "was deleted or replaced while it was in use; what was stored in it is lost", err);
}

sn_status sn__store_end(sn_store *store, sn_err *err) {
  bool writes = sqlite3_txn_state(store->db, "main") == SQLITE_TXN_WRITE;
  if (store->is_alone && has_changed(store)) {
    *err = (sn_err)SN_ERR_INIT; /* any error so far is a consequence of that */
    fail_file(store->path, "another program wrote to it meanwhile; try again", err);
  }
  if (err->code == SN_OK) sn__store_exec(store, "COMMIT", err);
  if (err->code == SN_OK && writes && !sn_store_is_there(store)) sn_store_fail_gone(store, err);
  /* Some failures (full disk) have rolled back already; then there is nothing left to do. */
  if (err->code != SN_OK && !sqlite3_get_autocommit(store->db)) sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
  return err->code;
}

/* ---- the path ---- */

static sn_status print_path(char *path, size_t room, const char *folder, const char *rest, sn_err *err) {
  int length = snprintf(path, room, "%s%s", folder, rest);
  if (length >= 0 && (size_t)length < room) return SN_OK;
  return sn_fail(err, SN_BAD_FILE, "the path of the database in %.200s is too long; %s", folder, elsewhere);
}

sn_status sn_store_default_path(char *path, size_t room, sn_err *err) {
  const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
  if (data && data[0] == '/') return print_path(path, room, data, "/snsim/runs.db", err);
  if (home && home[0]) return print_path(path, room, home, "/.local/share/snsim/runs.db", err);
  return sn_fail(err, SN_BAD_FILE, "neither XDG_DATA_HOME nor HOME is set, so there is no place for the database; %s",
                 elsewhere);
}

static bool is_default(const char *path) {
  char known[4096];
  sn_err ignored = SN_ERR_INIT;
  return sn_store_default_path(known, sizeof known, &ignored) == SN_OK && strcmp(known, path) == 0;
}

/* Makes the folders above `path`; 0700 as the XDG base directory specification asks. */
static sn_status make_folders(char *path, sn_err *err) {
  for (char *slash = strchr(path + 1, '/'); slash && err->code == SN_OK; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
      sn_fail(err, SN_BAD_FILE, "%.250s: cannot make this folder for the database: %s; %s", path, strerror(errno),
              elsewhere);
    *slash = '/';
  }
  return err->code;
}

/* SQLite would make the file itself, but does not say why it cannot. */
static sn_status make_file(const char *path, sn_err *err) {
  int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return errno == EEXIST ? SN_OK : fail_file(path, strerror(errno), err);
  return close(file) == 0 ? SN_OK : fail_file(path, strerror(errno), err);
}

/* SQLite takes a file of less than a page for an empty one, whatever is in it, and would write into it. */
static sn_status check_file(sn_store *store, const struct stat *found, sn_err *err) {
  if (S_ISDIR(found->st_mode)) return fail_file(store->path, "is a folder, not a database", err);
  if (!S_ISREG(found->st_mode)) return fail_file(store->path, "is not a regular file", err);
  bool piece = found->st_size > 0 && found->st_size < SMALLEST;
  return piece ? sn__store_damaged(store, "it is shorter than any database", err) : SN_OK;
}

/* SQLite would give a false reason. The path of links within links may be longer than the one given. */
static sn_status check_length(const char *path, sn_err *err) {
  char *real = sn_path_real(path);
  if (!real) return fail_file(path, strerror(errno), err);
  size_t bytes = strlen(real);
  free(real);
  if (bytes <= LONGEST_PATH) return SN_OK;
  return sn_fail(err, SN_BAD_FILE, "%.120s...: the full path has %zu bytes, SQLite takes no more than %d; %s", path,
                 bytes, LONGEST_PATH, elsewhere);
}

static sn_status check_path(sn_store *store, sn__mode mode, sn_err *err) {
  char *path = store->path;
  struct stat found;
  if (!path[0]) return sn_fail(err, SN_BAD_FILE, "the path of the database is empty; %s", elsewhere);
  if (stat(path, &found) == 0) return check_file(store, &found, err) == SN_OK ? check_length(path, err) : err->code;
  if (errno != ENOENT) return fail_file(path, strerror(errno), err);
  if (mode == SN__READ) return sn__store_no_runs(path, err);
  if (is_default(path) && make_folders(path, err) != SN_OK) return err->code;
  return check_length(path, err) == SN_OK ? make_file(path, err) : err->code;
}

/* A copy that SQLite takes for a path: it reads "file:..." as a URI. */
static char *copy_path(const char *path) {
  const char *prefix = strncmp(path, "file:", 5) == 0 ? "./" : "";
  size_t bytes = strlen(prefix) + strlen(path) + 1;
  char *copy = malloc(bytes);
  if (copy) snprintf(copy, bytes, "%s%s", prefix, path);
  return copy;
}

/* ---- opening ---- */

/* Whether this user may write the file and, for the files beside it, its folder. */
static bool may_write(const char *path) {
  char *real = sn_path_real(path), *slash = real ? strrchr(real, '/') : NULL;
  bool may = slash && access(real, W_OK) == 0;
  if (slash) slash[slash == real] = '\0';
  may = may && access(real, W_OK) == 0;
  free(real);
  return may;
}

/* A reader without the right to write. What a writer has under way, or did not finish, needs its files to be read. */
static sn_status choose_alone(sn_store *store, sn_err *err) {
  if (may_write(store->path)) return SN_OK;
  if (is_beside(store, "-journal", 0)) return SN_OK; /* makes no file, and says what is wrong */
  if (!is_beside(store, "-wal", 0)) {
    store->is_alone = stat(store->path, &store->alone) == 0;
    return store->is_alone ? SN_OK : fail_file(store->path, strerror(errno), err);
  }
  if (is_beside(store, "-shm", -1)) return SN_OK;
  return sn_fail(
      err, SN_BAD_FILE,
      "%.250s: a program was stopped while writing to it and left %.250s-wal; someone who may write both must "
      "open it once (snsim show --db FILE)",
      store->path, store->path);
}

/* "file:<path>?immutable=1", to be freed. */
static char *print_uri(const char *path) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/",
                    hex[] = "0123456789ABCDEF";
  size_t bytes = strlen(path), escaped = 0;
  char *text = malloc(3 * bytes + 1), *uri = text ? malloc(3 * bytes + 32) : NULL;
  for (size_t i = 0; uri && i < bytes; i++) {
    unsigned char c = (unsigned char)path[i];
    bool is_plain = strchr(plain, c) != NULL;
    text[escaped++] = is_plain ? path[i] : '%';
    if (is_plain) continue;
    text[escaped++] = hex[c >> 4];
    text[escaped++] = hex[c & 15];
  }
  if (uri) {
    text[escaped] = '\0';
    snprintf(uri, 3 * bytes + 32, "file:%s%s?immutable=1", path[0] == '/' ? "//" : "", text);
  }
  free(text);
  return uri;
}

static int open_alone(sn_store *store) {
  char *uri = print_uri(store->path);
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
  int rc = uri ? sqlite3_open_v2(uri, &store->db, flags, NULL) : SQLITE_NOMEM;
  free(uri);
  return rc;
}

static int open_shared(sn_store *store, sn__mode mode) {
  /* Readers open for writing too, where the file allows it: after a crash the first to come must repair the file. */
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE | (mode == SN__WRITE ? SQLITE_OPEN_CREATE : 0);
  return sqlite3_open_v2(store->path, &store->db, flags, NULL);
}

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* SQLite asks, after each failed try, whether to try again. Writers do not queue: whoever looks when the file is free
 * has it, so all look often, also those that have waited long (SQLite's own timeout looks more and more seldom). */
static int wait_for_others(void *self, int tries) {
  sn_store *store = self;
  if (tries == 0) store->waits_since_ms = now_ms();
  int64_t waited = now_ms() - store->waits_since_ms;
  if (waited >= store->patience_ms) return 0;
  if (store->waits && !store->waits(store->user, waited)) return 0;
  struct timespec pause = {0, (tries < PAUSE_MS ? tries + 1 : PAUSE_MS) * 1000000L};
  nanosleep(&pause, NULL);
  return 1;
}

void sn_store_set_wait(sn_store *store, bool (*waits)(void *user, int64_t ms), void *user) {
  store->waits = waits;
  store->user = user;
}

static sn_status open_file(sn_store *store, sn__mode mode, sn_err *err) {
  int rc = store->is_alone ? open_alone(store) : open_shared(store, mode);
  if (!store->db) return sn_fail_memory(err);
  sqlite3_extended_result_codes(store->db, 1);
  store->patience_ms = SETUP_MS;
  if (rc == SQLITE_OK) rc = sqlite3_busy_handler(store->db, wait_for_others, store);
  if (rc != SQLITE_OK) return sn__store_fail(store, rc, err);
  if (strcmp(store->path, ":memory:") != 0 && stat(store->path, &store->opened) != 0)
    return fail_file(store->path, strerror(errno), err);
  if (mode == SN__WRITE && sqlite3_db_readonly(store->db, "main"))
    return fail_file(store->path, "the file cannot be written", err);
  return sn__store_exec(store, "PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL", err);
}

/* WAL stays set in the file. Where two programs create the file at once, one of them may find it busy, and a file
 * system may not allow WAL: the store is as safe without, only readers and writer then wait for each other. */
static sn_status prepare_mode(sn_store *store, sn__mode mode, sn_err *err) {
  if (mode == SN__READ) return sn__store_exec(store, "PRAGMA query_only = ON", err);
  int rc = sqlite3_exec(store->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
  return rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY ? SN_OK : sn__store_fail(store, rc, err);
}

static sn_status open_any(sn_store *store, const char *path, sn__mode mode, sn_err *err) {
  if (strcmp(path, ":memory:") != 0) {
    if (check_path(store, mode, err) != SN_OK) return err->code;
    if (mode == SN__READ && choose_alone(store, err) != SN_OK) return err->code;
  }
  return open_file(store, mode, err);
}

static sn_store *open_store(const char *path, sn__mode mode, sn_err *err) {
  sn_store *store = calloc(1, sizeof *store);
  if (store) store->path = copy_path(path);
  if (!store || !store->path)
    sn_fail_memory(err);
  else
    open_any(store, path, mode, err);
  if (err->code == SN_OK) sn__schema_ready(store, mode, err);
  if (err->code == SN_OK) prepare_mode(store, mode, err);
  if (store) store->patience_ms = PATIENCE_MS;
  if (err->code == SN_OK) return store;
  sn_store_close(store);
  return NULL;
}

sn_store *sn_store_open(const char *path, sn_err *err) {
  return open_store(path, SN__WRITE, err);
}

sn_store *sn_store_open_read(const char *path, sn_err *err) {
  return open_store(path, SN__READ, err);
}

void sn_store_close(sn_store *store) {
  if (!store) return;
  for (int t = 0; t < SN__TABLES; t++) sqlite3_finalize(store->inserts[t]);
  sqlite3_close(store->db);
  free(store->path);
  free(store);
}
