/* The recorder; see the header. */
#include "cli/frame/recorder.h"

#include "base/fnv.h"
#include "base/path.h"
#include "exec/machine/module.h"
#include "models/zoo/zoo.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MOST_WORDS = 2 * SN_ARGS_LISTS + 32, DIGEST_ROOM = 24 };

typedef struct words {
  const char *all[MOST_WORDS + 1];
  uint32_t count;
} words;

static void add(words *w, const char *word) {
  if (w->count < MOST_WORDS) w->all[w->count++] = word;
}

static void add_option(words *w, const char *option, const char *value) {
  if (!value) return;
  add(w, option);
  add(w, value);
}

/* ---- Python ---- */

/* "python3" where an environment lies around the program, whose python it is; else the one that is called so. */
static const char *python(char path[PATH_MAX + 64]) {
  const char *named = getenv("SNSIM_PYTHON");
  char folder[PATH_MAX];
  if (named && *named) return named;
  if (!sn_module_program_folder(folder, sizeof folder)) return "python3";
  snprintf(path, PATH_MAX + 64, "%s/../pyvenv.cfg", folder);
  if (access(path, F_OK) != 0) return "python3";
  snprintf(path, PATH_MAX + 64, "%s/python3", folder);
  return access(path, X_OK) == 0 ? path : "python3";
}

/* The package of the same build goes ahead of one that Python has. */
static sn_status find_package(sn_err *err) {
  static const char *const places[] = {"../share/snsim/python", "../python"};
  const char *known = getenv("PYTHONPATH");
  char folder[PATH_MAX], path[2 * PATH_MAX];
  bool here = sn_module_program_folder(folder, sizeof folder), found = false;
  for (size_t i = 0; i < sizeof places / sizeof *places && here && !found; i++) {
    snprintf(path, sizeof path, "%s/%s/snsim/record.py", folder, places[i]);
    if ((found = access(path, R_OK) == 0)) snprintf(path, sizeof path, "%s/%s", folder, places[i]);
  }
  if (!found) return SN_OK;
  size_t room = strlen(path) + (known ? strlen(known) : 0) + 2;
  char *value = malloc(room);
  if (!value) return sn_fail_memory(err);
  snprintf(value, room, "%s%s%s", path, known && *known ? ":" : "", known ? known : "");
  int failed = setenv("PYTHONPATH", value, 1);
  free(value);
  return failed ? sn_fail_memory(err) : SN_OK;
}

/* Starts it. Ctrl-C is the child's, which has things to undo, as it was ours. */
static int start(const words *w, int out, bool interruptible, pid_t *child) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t own;
  sigset_t interrupt;
  if (posix_spawn_file_actions_init(&actions) != 0) return ENOMEM;
  if (posix_spawnattr_init(&own) != 0) {
    posix_spawn_file_actions_destroy(&actions);
    return ENOMEM;
  }
  sigemptyset(&interrupt);
  if (interruptible) sigaddset(&interrupt, SIGINT);
  posix_spawnattr_setsigdefault(&own, &interrupt);
  posix_spawnattr_setflags(&own, POSIX_SPAWN_SETSIGDEF);
  if (out != STDOUT_FILENO) posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  fflush(NULL);
  int failed = posix_spawnp(child, w->all[0], &actions, &own, (char *const *)w->all, environ);
  posix_spawnattr_destroy(&own);
  posix_spawn_file_actions_destroy(&actions);
  return failed;
}

/* What it prints goes to `out`; what it says, to standard error. Its status as a shell tells it; below 0: it could not be
 * started, with the error. Whoever waits is not ended by Ctrl-C, as whoever is waited for says what became of it. */
static int start_and_wait(const words *w, int out, sn_err *err) {
  struct sigaction before, ignore = {.sa_handler = SIG_IGN};
  pid_t child;
  int status = 0;
  if (find_package(err) != SN_OK) return -1;
  sigemptyset(&ignore.sa_mask);
  sigaction(SIGINT, &ignore, &before);
  int failed = start(w, out, before.sa_handler != SIG_IGN, &child);
  while (!failed && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  sigaction(SIGINT, &before, NULL);
  if (failed)
    return sn_fail(err, SN_BAD_DEVICE, "%s: %s; SNSIM_PYTHON names a Python that has PyTorch", w->all[0],
                   strerror(failed)),
           -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* `done`: "recorded". */
static sn_status run(const words *w, int out, const char *what, const char *done, sn_err *err) {
  int code = start_and_wait(w, out, err);
  if (code < 0) return err->code;
  if (code == 0) return SN_OK;
  if (code == 128 + SIGINT) exit(code);
  if (code == 127)
    return sn_fail(err, SN_BAD_DEVICE, "there is no %s; SNSIM_PYTHON names a Python that has PyTorch", w->all[0]);
  if (code == 4) return sn_fail(err, SN_BAD_DEVICE, "recording needs PyTorch; SNSIM_PYTHON names a Python that has it");
  return sn_fail(err, code == 2 ? SN_BAD_USAGE : SN_BAD_INPUT, "%s could not be %s, see above", what, done);
}

/* ---- the words ---- */

static const char *autocast(const sn_args *args, sn_err *err) {
  sn_precision precision = args->options.iteration.precision;
  if (!sn_args_gave(args, "precision") || precision == SN_FP32) return NULL;
  if (precision == SN_AMP_BF16) return "bf16";
  if (precision == SN_AMP_FP16) return "fp16";
  sn_fail(
      err, SN_BAD_USAGE,
      "--precision %s: the recorder knows fp32, amp-bf16 and amp-fp16; build the model in the type that it shall have",
      sn_precision_name(precision));
  return NULL;
}

/* Others' classes the recorder does not know; who has one gives it in Python. */
static const char *optimizer(const sn_args *args, sn_err *err) {
  static const char *const known[] = {"sgd", "momentum", "adam", "adamw", "adagrad", "rmsprop"};
  const char *name = sn_optimizer_name(args->options.iteration.optimizer);
  if (!sn_args_gave(args, "optimizer")) return NULL;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (strcmp(name, known[i]) == 0) return name;
  sn_fail(err, SN_BAD_USAGE,
          "--optimizer %s: the recorder knows sgd, momentum, adam, adamw, adagrad and rmsprop; any other is made in "
          "Python, by a function that returns models, optimizers and a step (docs/record.md)",
          name);
  return NULL;
}

static sn_status add_loop(words *w, const sn_args *args, sn_err *err) {
  for (uint32_t i = 0; i < args->inputs.count; i++) add_option(w, "--input", args->inputs.texts[i]);
  add_option(w, "--optimizer", optimizer(args, err));
  if (err->code == SN_OK) add_option(w, "--autocast", autocast(args, err));
  if (args->options.iteration.inference) add(w, "--inference");
  add_option(w, "--assume", args->assume);
  return err->code;
}

static void begin(words *w, char path[PATH_MAX + 64], const char *module, const char *what) {
  *w = (words){.count = 0};
  add(w, python(path));
  add(w, "-m");
  add(w, module);
  if (what) add(w, what);
}

static sn_status check_record(const sn_args *args, sn_err *err) {
  bool of_config = args->hf || args->config;
  if (!args->operand && !of_config)
    return sn_fail(
        err, SN_BAD_USAGE,
        "what to record is missing: FILE.py:NAME, such as train.py:make, or --config config.json of a model of "
        "transformers");
  if (of_config && (args->operand || args->inputs.count))
    return sn_fail(err, SN_BAD_USAGE,
                   "--hf and --config record a model of transformers, whose inputs are tokens; leave FILE.py:NAME and "
                   "--input out");
  if (of_config && !args->config)
    return sn_fail(err, SN_BAD_USAGE,
                   "--hf %.80s: --config is missing: the model's config.json, as weights are not read", args->hf);
  if (args->output && strcmp(args->output, "-") != 0 && !sn_net_is_recording(args->output))
    return sn_fail(err, SN_BAD_USAGE,
                   "--output %.200s: the name of a recording ends in .rec, or in .rec.gz, which packs it",
                   args->output);
  if (of_config == (args->sequence > 0)) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 of_config ? "--sequence is missing: how many tokens a row has, such as --sequence 128"
                           : "--sequence is of --config; inputs of FILE.py:NAME have --input 128:int64");
}

sn_status sn_cli_record(const sn_args *args, sn_err *err) {
  char path[PATH_MAX + 64], batch[16], sequence[16];
  words w;
  const char *what = args->operand ? args->operand : args->hf ? args->hf : args->config;
  if (check_record(args, err) != SN_OK) return err->code;
  begin(&w, path, "snsim.record", args->operand);
  if (add_loop(&w, args, err) != SN_OK) return err->code;
  snprintf(batch, sizeof batch, "%" PRIu32, args->batch);
  snprintf(sequence, sizeof sequence, "%" PRIu32, args->sequence);
  add_option(&w, "--hf", args->hf);
  add_option(&w, "--config", args->config);
  add_option(&w, "--sequence", args->sequence ? sequence : NULL);
  add_option(&w, "--batch", args->batch ? batch : NULL);
  add_option(&w, "--name", args->name);
  add_option(&w, "--output", args->output);
  if (args->check) add(&w, "--check");
  return run(&w, STDOUT_FILENO, what, "recorded", err);
}

sn_status sn_recorder_snapshot(const char *net, uint32_t batch, const char *output, sn_err *err) {
  char path[PATH_MAX + 64], number[16];
  words w;
  if (!sn_net_is_recording(net))
    return sn_fail(err, SN_BAD_USAGE,
                   "--snapshot: %.120s is no recording, and of other networks the allocator's history has no addresses "
                   "of PyTorch's; record the model with snsim record",
                   net);
  char *file = strndup(net, (size_t)(sn_net_file_end(net) - net));
  if (!file) return sn_fail_memory(err);
  begin(&w, path, "snsim._snapshot", file);
  snprintf(number, sizeof number, "%" PRIu32, batch);
  add_option(&w, "--batch", number);
  add_option(&w, "--output", output);
  run(&w, STDERR_FILENO, file, "written as a snapshot", err);
  free(file);
  return err->code;
}

/* ---- kept recordings ---- */

static uint64_t add_bytes(uint64_t hash, const char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) hash = sn_fnv_add(hash, (unsigned char)bytes[i]);
  return hash;
}

static uint64_t add_file(uint64_t hash, const char *path) {
  char bytes[4096]; /* where address space ends, the stack grows little further than it began */
  FILE *file = fopen(path, "rb");
  for (size_t n; file && (n = fread(bytes, 1, sizeof bytes, file)) > 0;) hash = add_bytes(hash, bytes, n);
  if (file) fclose(file);
  return hash;
}

/* Of all .py files beside it, in any order: it may import them. */
static uint64_t folder_digest(const char *file) {
  char folder[PATH_MAX], path[2 * PATH_MAX];
  snprintf(folder, sizeof folder, "%s", file);
  char *slash = strrchr(folder, '/');
  if (slash) slash[slash == folder] = '\0';
  DIR *all = opendir(slash ? folder : ".");
  uint64_t sum = 0;
  for (struct dirent *entry; all && (entry = readdir(all));) {
    size_t length = strlen(entry->d_name);
    if (length < 3 || strcmp(entry->d_name + length - 3, ".py") != 0) continue;
    snprintf(path, sizeof path, "%s/%s", slash ? folder : ".", entry->d_name);
    sum += add_file(sn_fnv_text(entry->d_name), path);
  }
  if (all) closedir(all);
  return sum;
}

/* Of the words, the files, and who records. */
static uint64_t digest(const words *w, const char *real) {
  uint64_t hash = sn_fnv_text(SNSIM_VERSION);
  for (uint32_t i = 0; i < w->count; i++) hash = add_bytes(hash, w->all[i], strlen(w->all[i]) + 1);
  uint64_t folder = folder_digest(real);
  hash = add_bytes(hash, real, strlen(real));
  return add_bytes(hash, (const char *)&folder, sizeof folder);
}

/* recordings/ beside the database. */
static sn_status make_folder(const sn_args *args, char folder[PATH_MAX], sn_err *err) {
  if (sn_args_database(args, folder, PATH_MAX - sizeof "recordings", err) != SN_OK) return err->code;
  char *end = strrchr(folder, '/');
  end = end ? end + 1 : folder;
  memcpy(end, "recordings", sizeof "recordings");
  for (char *slash = folder; slash && err->code == SN_OK;) {
    slash = strchr(slash + 1, '/');
    if (slash) *slash = '\0';
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
      sn_fail(
          err, SN_BAD_FILE,
          "%.250s: cannot make this folder for recordings: %s; --db FILE has them in FILE's folder, and snsim record "
          "writes one where -o says",
          folder, strerror(errno));
    if (slash) *slash = '/';
  }
  return err->code;
}

/* FILE of FILE.py:NAME, without links. To be freed. */
static char *real_file(const char *what, sn_err *err) {
  size_t length = (size_t)(sn_args_source_name(what) - what) - 1;
  char *file = malloc(length + 1), *real = NULL;
  if (file) {
    memcpy(file, what, length);
    file[length] = '\0';
    if (access(file, R_OK) != 0)
      sn_fail(err, SN_BAD_FILE, "%.300s: %s", file, strerror(errno));
    else
      real = sn_path_real(file);
  }
  free(file);
  if (!real && err->code == SN_OK) sn_fail_memory(err);
  return real;
}

static sn_status record(const sn_args *args, words *w, const char *path, sn_err *err) {
  add_option(w, "--name", args->net);
  add_option(w, "--output", path);
  return run(w, STDERR_FILENO, args->net, "recorded", err);
}

static sn_status find_or_record(sn_args *args, const char *real, sn_err *err) {
  char path[PATH_MAX + 64], folder[PATH_MAX];
  words w;
  begin(&w, path, "snsim.record", args->net);
  if (add_loop(&w, args, err) != SN_OK || make_folder(args, folder, err) != SN_OK) return err->code;
  size_t room = sizeof args->recorded_text;
  int length = snprintf(args->recorded_text, room, "%s/%.60s-%016" PRIx64 ".rec.gz", folder,
                        sn_args_source_name(args->net), digest(&w, real));
  if (length < 0 || (size_t)length >= room) return sn_fail(err, SN_BAD_USAGE, "%.200s: the path is too long", folder);
  if (access(args->recorded_text, R_OK) == 0) return SN_OK;
  return record(args, &w, args->recorded_text, err);
}

/* What has gone into the recording is not asked for again. */
static void take_loop_out(sn_args *args) {
  const sn_options plain = SN_OPTIONS_INIT;
  args->options.iteration.optimizer = plain.iteration.optimizer;
  args->options.iteration.precision = plain.iteration.precision;
  args->options.iteration.inference = false;
  sn_args_forget(args, "optimizer");
  sn_args_forget(args, "precision");
}

sn_status sn_recorder_take(sn_args *args, sn_err *err) {
  if (!sn_args_is_source(args)) {
    if (args->inputs.count && args->command->bit != SN_CMD_RECORD)
      return sn_fail(err, SN_BAD_USAGE, "--input is of a model in Python: --net FILE.py:NAME --input 3,224,224");
    return SN_OK;
  }
  char *real = real_file(args->net, err);
  if (real && find_or_record(args, real, err) == SN_OK) {
    take_loop_out(args);
    args->net = args->plain_net = args->recorded_text;
    if (args->units && sn_net_add_units(args->net, args->units, args->loss_text, err) == SN_OK)
      args->net = args->plain_net = args->loss_text;
  }
  free(real);
  return err->code;
}
