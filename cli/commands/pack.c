/* `snsim pack FILE.csv`: a packing problem of one's own, or of others who share theirs (sim/memory/pack.h).
 *
 *   load -> pack -> what it takes, beside the lower bound -> the blocks with their offsets */
#include "base/units.h"
#include "cli/frame/json.h"
#include "cli/frame/options.h"
#include "cli/frame/table.h"
#include "sim/ask/blocks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A problem and its answer. */
typedef struct packed {
  const sn_args *args;
  const sn_block_list *list;
  uint64_t *offsets;
  sn_packing packing;
} packed;

static bool is_proved(const packed *p) {
  return p->packing.bytes == p->packing.lower_bound;
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
  if (is_proved(p))
    fputs(", reached: nothing can be better\n", out);
  else
    fprintf(out, ", passed by %.2f %%\n", ((double)k->bytes / (double)k->lower_bound - 1) * 100);
  fprintf(out, "moves        %" PRIu32 "\n", k->moves);
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
  if (fits(p)) return SN_OK;
  if (p->packing.lower_bound > p->args->capacity.bytes)
    return sn_fail(err, SN_NO_FIT, "%" PRIu64 " bytes live at one time, which no packing fits into %" PRIu64,
                   p->packing.lower_bound, p->args->capacity.bytes);
  return sn_fail(err, SN_NO_FIT,
                 "%" PRIu64 " bytes needed, %" PRIu64
                 " there; a better packing is not ruled out: try more --moves than "
                 "%" PRIu32,
                 p->packing.bytes, p->args->capacity.bytes, p->args->moves);
}

sn_status sn_cli_pack(const sn_args *args, sn_err *err) {
  packed p = {.args = args};
  if (args->json && to_stdout(args))
    return sn_fail(err, SN_BAD_USAGE, "--json and -o - both want standard output; name a file for the blocks");
  if (sn_out_check(args->output, err) != SN_OK) return err->code;
  sn_block_list *list = sn_blocks_load(args->operand, err);
  if (!list) return err->code;
  p.list = list;
  p.offsets = calloc((size_t)list->count + 1, sizeof *p.offsets);
  sn_pack_limits limits = {.moves = args->moves, .enough = args->capacity.given ? args->capacity.bytes : 0};
  if (!p.offsets)
    sn_fail_memory(err);
  else
    sn_pack(list->blocks, list->count, &limits, p.offsets, &p.packing, err);
  if (err->code == SN_OK && print(&p, err) == SN_OK && write_file(&p, err) == SN_OK) judge(&p, err);
  free(p.offsets);
  sn_blocks_free(list);
  return err->code;
}
