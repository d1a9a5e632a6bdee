/* `snsim pack FILE.csv`: a packing problem of one's own, or of others who share theirs (sim/memory/pack.h, with --exact
 * also sim/memory/pack_exact.h).
 *
 *   load -> pack -> what it takes, beside the lower bound -> the blocks with their offsets
 *
 * Ctrl-C and SIGTERM end an exact search; what it has found until then is printed and written, and the exit status is
 * the signal's. */
#include "base/units.h"
#include "cli/frame/json.h"
#include "cli/options/options.h"
#include "cli/options/table.h"
#include "sim/ask/blocks.h"
#include "sim/memory/pack_exact.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A problem and its answer. */
typedef struct packed {
  const sn_args *args;
  sn_block_list *list;
  uint64_t *offsets;
  sn_packing packing;
  sn_exact exact;
  double seconds; /* of searching */
  double shown;   /* when the line of progress was */
} packed;

static bool is_proved(const packed *p) {
  return p->packing.bytes == p->exact.floor;
}

static bool fits(const packed *p) {
  return !p->args->capacity.given || p->packing.bytes <= p->args->capacity.bytes;
}

/* "1234567 bytes (1.18 MiB)"; small ones say nothing twice. */
static void print_bytes(uint64_t bytes, FILE *out) {
  char text[SN_UNIT_TEXT];
  fprintf(out, "%" PRIu64 " bytes", bytes);
  if (bytes >= 1024) fprintf(out, " (%s)", sn_print_bytes(bytes, text));
}

static void print_summary(const packed *p, FILE *out) {
  const sn_packing *k = &p->packing;
  char name[4096];
  snprintf(name, sizeof name, "%s", p->args->operand);
  fprintf(out, "%s: %" PRIu32 " blocks\n", sn_table_clean(name), p->list->count);
  fputs("packed in    ", out);
  print_bytes(k->bytes, out);
  fputs("\nlower bound  ", out);
  print_bytes(k->lower_bound, out);
  if (k->bytes == k->lower_bound)
    fputs(", reached: nothing can be better\n", out);
  else
    fprintf(out, ", passed by %.2f %%%s\n", ((double)k->bytes / (double)k->lower_bound - 1) * 100,
            is_proved(p) ? "; searched through: nothing is better" : "");
  fprintf(out, "moves        %" PRIu32 "\n", k->moves);
  if (p->args->exact) fprintf(out, "nodes        %" PRIu64 " in %.2f s\n", p->exact.nodes, p->seconds);
  if (!p->args->capacity.given) return;
  fputs("capacity     ", out);
  print_bytes(p->args->capacity.bytes, out);
  fputs(fits(p) ? ", it fits\n" : ", it does not fit\n", out);
}

static sn_status print_json(const packed *p, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "file", p->args->operand);
  sn_json_put_count(&o, "blocks", p->list->count);
  sn_json_put_count(&o, "bytes", p->packing.bytes);
  sn_json_put_count(&o, "lower_bound_bytes", p->packing.lower_bound);
  sn_json_put_bool(&o, "proved", is_proved(p));
  sn_json_put_count(&o, "moves", p->packing.moves);
  sn_json_put_count(&o, "nodes", p->exact.nodes);
  sn_json_put_real(&o, "seconds", p->seconds);
  if (p->args->capacity.given) {
    sn_json_put_count(&o, "capacity_bytes", p->args->capacity.bytes);
    sn_json_put_bool(&o, "fits", fits(p));
  }
  return sn_json_end(&o, "", false, "\n", out, err);
}

static void write_blocks(const packed *p, FILE *out) {
  fputs("id,lower,upper,size,offset\n", out);
  for (uint32_t b = 0; b < p->list->count; b++) {
    const sn_block *block = &p->list->blocks[b];
    fprintf(out, "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", p->list->ids[b], block->lower, block->upper,
            block->bytes, p->offsets[b]);
  }
}

static bool to_stdout(const sn_args *args) {
  return args->output && strcmp(args->output, "-") == 0;
}

static sn_status write_file(const packed *p, sn_err *err) {
  sn_out out;
  if (!p->args->output) return SN_OK;
  if (sn_out_open(&out, p->args->output, SN_COLOR_NEVER, err) != SN_OK) return err->code;
  write_blocks(p, out.stream);
  return sn_out_close(&out, err);
}

static sn_status print(const packed *p, sn_err *err) {
  sn_out out;
  if (to_stdout(p->args)) return SN_OK;
  if (sn_out_open(&out, NULL, p->args->color, err) != SN_OK) return err->code;
  if (p->args->json)
    print_json(p, out.stream, err);
  else
    print_summary(p, out.stream);
  return sn_out_close(&out, err);
}

static sn_status judge(const packed *p, sn_err *err) {
  uint64_t capacity = p->args->capacity.bytes;
  if (fits(p)) return SN_OK;
  if (p->packing.lower_bound > capacity)
    return sn_fail(err, SN_NO_FIT, "%" PRIu64 " bytes live at one time, which no packing fits into %" PRIu64,
                   p->packing.lower_bound, capacity);
  if (p->exact.floor > capacity)
    return sn_fail(err, SN_NO_FIT, "no packing fits into %" PRIu64 " bytes: all were searched through", capacity);
  if (p->args->exact)
    return sn_fail(err, SN_NO_FIT,
                   "%" PRIu64 " bytes needed, %" PRIu64 " there; a better packing is not ruled out: try more --nodes "
                   "than %" PRIu64,
                   p->packing.bytes, capacity, p->exact.nodes);
  return sn_fail(err, SN_NO_FIT,
                 "%" PRIu64 " bytes needed, %" PRIu64 " there; a better packing is not ruled out: try --exact, or more "
                 "--moves than %" PRIu32,
                 p->packing.bytes, capacity, p->args->moves);
}

/* ---- searching ---- */

static void fill_signals(sigset_t *set) {
  sigemptyset(set);
  sigaddset(set, SIGINT);
  sigaddset(set, SIGTERM);
}

/* They wait until the answer is written. A shell's background jobs begin with SIGINT ignored: it ends the search all
 * the same, so the status must say so. */
static void hold_signals(void) {
  sigset_t set;
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  fill_signals(&set);
  sigprocmask(SIG_BLOCK, &set, NULL);
}

static bool is_interrupted(void) {
  sigset_t set;
  return sigpending(&set) == 0 && (sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1);
}

/* Does not come back where one of them waits. */
static void release_signals(const sn_err *err) {
  sigset_t set;
  if (is_interrupted())
    sn_out_say("interrupted; this is the best until then%s%s", err->code == SN_OK ? "" : ": ",
               err->code == SN_OK ? "" : err->text);
  fill_signals(&set);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool should_stop(void *context) {
  enum { PER_SECOND = 5 };
  packed *p = context;
  char line[100];
  if (now() - p->shown > 1.0 / PER_SECOND) {
    snprintf(line, sizeof line, "searching ... %" PRIu64 " of at most %" PRIu64 " nodes, Ctrl-C ends it with the best",
             p->exact.nodes, p->exact.most);
    sn_out_progress(line);
    p->shown = now();
  }
  return is_interrupted();
}

static sn_status search_exactly(packed *p, uint64_t capacity, sn_err *err) {
  const sn_block_list *list = p->list;
  sn_exact_limits limits = {.capacity = capacity, .nodes = p->args->nodes, .stop = should_stop, .context = p};
  hold_signals();
  p->shown = now();
  sn_pack_exact(list->blocks, list->count, &limits, p->offsets, &p->packing, &p->exact, err);
  sn_out_progress(NULL);
  return err->code;
}

static sn_status search(packed *p, sn_err *err) {
  const sn_args *args = p->args;
  const sn_block_list *list = p->list;
  uint64_t capacity = args->capacity.given ? args->capacity.bytes : 0;
  double from = now();
  sn_pack(list->blocks, list->count, &(sn_pack_limits){.moves = args->moves, .enough = capacity}, p->offsets,
          &p->packing, err);
  p->exact = (sn_exact){.floor = p->packing.lower_bound};
  if (err->code == SN_OK && args->exact) search_exactly(p, capacity, err);
  p->seconds = now() - from;
  return err->code;
}

static bool load(packed *p, sn_err *err) {
  p->list = sn_blocks_load(p->args->operand, err);
  if (!p->list) return false;
  if (p->list->hints)
    sn_out_say("%" PRIu32 " of %" PRIu32 " blocks have a hint, which is not looked at", p->list->hints, p->list->count);
  p->offsets = calloc((size_t)p->list->count + 1, sizeof *p->offsets);
  if (!p->offsets) sn_fail_memory(err);
  return p->offsets != NULL;
}

sn_status sn_cli_pack(const sn_args *args, sn_err *err) {
  packed p = {.args = args};
  if (args->json && to_stdout(args))
    return sn_fail(err, SN_BAD_USAGE, "--json and -o - both want standard output; name a file for the blocks");
  if (args->nodes > 0 && !args->exact)
    return sn_fail(err, SN_BAD_USAGE, "--nodes counts what an exact search tries: give --exact too");
  if (sn_out_check(args->output, err) != SN_OK) return err->code;
  if (load(&p, err) && search(&p, err) == SN_OK && print(&p, err) == SN_OK && write_file(&p, err) == SN_OK)
    judge(&p, err);
  free(p.offsets);
  sn_blocks_free(p.list);
  if (args->exact) release_signals(err);
  return err->code;
}
