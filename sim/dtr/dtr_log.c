/* DTR's logs; see the header. Line by line; a CALL waits for the lines about its results. */
#include "sim/dtr/dtr_log.h"

#include "base/fnv.h"
#include "base/path.h"
#include "base/text.h"
#include "sim/dtr/dtr_line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- names: a hash table of numbers into texts that stand one behind the other ---- */

typedef struct entry {
  uint64_t text; /* in `texts` */
  uint32_t tensor;
} entry;

typedef struct names {
  char *texts;
  uint64_t bytes, text_room;
  entry *list; /* in the order of their appearance */
  uint32_t count, list_room;
  uint32_t *slots; /* 0: free, else the name's number + 1; a power of two, at most half full */
  uint64_t n_slots;
} names;

static void clear_names(names *n) {
  free(n->texts);
  free(n->list);
  free(n->slots);
}

static uint64_t hash(const char *text) {
  uint64_t h = sn_fnv_text(text);
  return h ^ h >> 32;
}

/* The slot of a name, or the free one where it would stand. */
static uint32_t *slot_of(const names *n, const char *text) {
  uint64_t i = hash(text) & (n->n_slots - 1);
  while (n->slots[i] && strcmp(n->texts + n->list[n->slots[i] - 1].text, text) != 0) i = (i + 1) & (n->n_slots - 1);
  return &n->slots[i];
}

static entry *find_name(const names *n, const char *text) {
  uint32_t slot = n->n_slots ? *slot_of(n, text) : 0;
  return slot ? &n->list[slot - 1] : NULL;
}

static bool more_slots(names *n) {
  if (2 * ((uint64_t)n->count + 1) <= n->n_slots) return true;
  names larger = *n;
  larger.n_slots = n->n_slots ? 2 * n->n_slots : 1024;
  larger.slots = calloc(larger.n_slots, sizeof *larger.slots);
  if (!larger.slots) return false;
  for (uint32_t i = 0; i < n->count; i++) *slot_of(&larger, n->texts + n->list[i].text) = i + 1;
  free(n->slots);
  *n = larger;
  return true;
}

static bool more_list(names *n) {
  if (n->count < n->list_room) return true;
  uint32_t room = n->list_room ? 2 * n->list_room : 512;
  entry *more = realloc(n->list, room * sizeof *more);
  if (!more) return false;
  n->list = more;
  n->list_room = room;
  return true;
}

static bool more_texts(names *n, size_t bytes) {
  if (n->bytes + bytes <= n->text_room) return true;
  uint64_t room = 2 * n->text_room + bytes + 4096;
  char *more = realloc(n->texts, room);
  if (!more) return false;
  n->texts = more;
  n->text_room = room;
  return true;
}

static sn_status add_name(names *n, const char *text, uint32_t tensor, sn_err *err) {
  size_t bytes = strlen(text) + 1;
  if (n->count == SN_DTR_MOST_ITEMS) return sn_fail(err, SN_BAD_INPUT, "more than %d names", SN_DTR_MOST_ITEMS);
  if (!more_slots(n) || !more_list(n) || !more_texts(n, bytes)) return sn_fail_memory(err);
  uint32_t *slot = slot_of(n, text);
  memcpy(n->texts + n->bytes, text, bytes);
  n->list[n->count++] = (entry){.text = n->bytes, .tensor = tensor};
  n->bytes += bytes;
  *slot = n->count;
  return SN_OK;
}

/* ---- reading ---- */

typedef struct reader {
  const char *name; /* of the file */
  FILE *in;
  uint64_t line_number;
  sn__dtr_line line, call; /* the last line; the CALL whose results come */
  names names;
  sn_dtr_program *program;
  int32_t *references; /* of tensors: how many names mean them, less what was released */
  uint32_t references_room;
  uint32_t *args;         /* of the operation being read */
  sn_dtr_output *outputs; /* the same */
  uint32_t args_room, outputs_room;
  sn_err *err;
} reader;

static sn_status wrong(const reader *r, const char *what, const char *name) {
  return sn_fail(r->err, SN_BAD_INPUT, "\"%.80s\" %s", name, what);
}

static bool make_room(void **items, uint32_t *room, uint32_t count, size_t size) {
  if (count <= *room) return true;
  uint32_t wanted = count > 2 * *room ? count + 16 : 2 * *room;
  void *more = realloc(*items, wanted * size);
  if (!more) return false;
  *items = more;
  *room = wanted;
  return true;
}

static sn_status find(const reader *r, const char *text, uint32_t *tensor) {
  const entry *n = find_name(&r->names, text);
  if (!n) return wrong(r, "is the name of nothing yet", text);
  *tensor = n->tensor;
  return SN_OK;
}

/* Reads the next line, with its number; *end: there is none. */
static sn_status next_line(reader *r, bool *end) {
  r->line_number++;
  return sn__dtr_line_next(&r->line, r->in, end, r->err);
}

static uint64_t bytes_of(const sn_dtr_program *p, uint32_t tensor) {
  return p->storages[p->tensors[tensor].storage].bytes;
}

static sn_status hold(reader *r, uint32_t tensor) {
  if (r->references[tensor] == INT32_MAX)
    return sn_fail(r->err, SN_BAD_INPUT, "more than 2^31 references to one tensor");
  r->references[tensor]++;
  return sn_dtr_program_act(r->program, SN_DTR_HOLD, tensor, r->err);
}

static sn_status release(reader *r, uint32_t tensor) {
  if (r->references[tensor] == INT32_MIN) return sn_fail(r->err, SN_BAD_INPUT, "released 2^31 times");
  r->references[tensor]--;
  return sn_dtr_program_act(r->program, SN_DTR_RELEASE, tensor, r->err);
}

/* Adds an operation with the first `n_args` of r->args and `n_outputs` of r->outputs; *first is its first tensor. */
static sn_status run(reader *r, int64_t time, uint32_t n_args, uint32_t n_outputs, uint32_t *first) {
  sn_dtr_program *p = r->program;
  *first = p->n_tensors;
  if (!make_room((void **)&r->references, &r->references_room, p->n_tensors + n_outputs, sizeof *r->references))
    return sn_fail_memory(r->err);
  if (sn_dtr_program_run(p, (uint64_t)time, r->args, n_args, r->outputs, n_outputs, r->err) != SN_OK)
    return r->err->code;
  for (uint32_t i = 0; i < n_outputs; i++) r->references[*first + i] = 1;
  return SN_OK;
}

/* Names a new tensor. */
static sn_status give_name(reader *r, const char *text, uint32_t tensor) {
  if (find_name(&r->names, text)) return wrong(r, "is there already", text);
  return add_name(&r->names, text, tensor, r->err);
}

static sn_status read_number(const sn__dtr_line *line, sn__dtr_key key, int64_t low, int64_t *number, sn_err *err) {
  return sn__dtr_number(sn__dtr_line_text(line, key), sn__dtr_key_names[key], low, INT64_MAX, number, err);
}

/* ---- instructions ---- */

static sn_status do_call(reader *r);
static sn_status do_constant(reader *r);
static sn_status do_mutate(reader *r);
static sn_status do_copy(reader *r);
static sn_status do_copy_from(reader *r);
static sn_status do_release(reader *r);
static sn_status do_annotate(reader *r);
static sn_status do_stray(reader *r);

enum { WHOLE = 1 << SN__DTR_INSTRUCTION, NAMED = WHOLE | 1 << SN__DTR_NAME };

typedef struct instruction {
  const char *name;
  unsigned keys; /* a bit each: what it has, and nothing else */
  sn_status (*run)(reader *r);
} instruction;

typedef enum which { CALL, CONSTANT, MUTATE, COPY, COPY_FROM, RELEASE, ANNOTATE, MEMORY, ALIAS, INSTRUCTIONS } which;

static const instruction instructions[INSTRUCTIONS] = {
    {"CALL", NAMED | 1 << SN__DTR_ARGS | 1 << SN__DTR_RESULT | 1 << SN__DTR_TIME, do_call},
    {"CONSTANT", NAMED, do_constant},
    {"MUTATE", NAMED | 1 << SN__DTR_ARGS | 1 << SN__DTR_MUTATE | 1 << SN__DTR_TIME, do_mutate},
    {"COPY", WHOLE | 1 << SN__DTR_DST | 1 << SN__DTR_SRC, do_copy},
    {"COPY_FROM", WHOLE | 1 << SN__DTR_DST | 1 << SN__DTR_SRC, do_copy_from},
    {"RELEASE", NAMED, do_release},
    {"ANNOTATE", WHOLE | 1 << SN__DTR_ANNOTATION, do_annotate},
    {"MEMORY", NAMED | 1 << SN__DTR_MEMORY, do_stray},
    {"ALIAS", NAMED | 1 << SN__DTR_ALIAS, do_stray},
};

static sn_status check_keys(const sn__dtr_line *line, const instruction *i, sn_err *err) {
  for (sn__dtr_key k = 0; k < SN__DTR_KEYS; k++) {
    bool wanted = i->keys >> k & 1, array = k == SN__DTR_ARGS || k == SN__DTR_RESULT || k == SN__DTR_MUTATE;
    const sn__dtr_value *v = &line->values[k];
    if (wanted && !v->given) return sn_fail(err, SN_BAD_INPUT, "%s without %s", i->name, sn__dtr_key_names[k]);
    if (!wanted && v->given)
      return sn_fail(err, SN_BAD_INPUT, "%s has no %s; is it a log of another version?", i->name, sn__dtr_key_names[k]);
    if (v->given && v->array != array)
      return sn_fail(err, SN_BAD_INPUT, "%s is %s array", sn__dtr_key_names[k], array ? "no" : "an");
  }
  return SN_OK;
}

/* Cuts the line and finds what it is. */
static sn_status parse(sn__dtr_line *line, const instruction **found, sn_err *err) {
  const char *known[INSTRUCTIONS];
  char suggestion[80];
  if (sn__dtr_line_parse(line, err) != SN_OK) return err->code;
  const sn__dtr_value *value = &line->values[SN__DTR_INSTRUCTION];
  if (!value->given || value->array) return sn_fail(err, SN_BAD_INPUT, "no INSTRUCTION");
  const char *text = sn__dtr_line_text(line, SN__DTR_INSTRUCTION);
  for (which i = 0; i < INSTRUCTIONS; i++) {
    known[i] = instructions[i].name;
    *found = &instructions[i];
    if (strcmp(text, known[i]) == 0) return check_keys(line, *found, err);
  }
  sn_text_suggest(text, known, INSTRUCTIONS, suggestion, sizeof suggestion);
  return sn_fail(err, SN_BAD_INPUT, "unknown instruction \"%.40s\"%s; is it a log of another version?", text,
                 suggestion);
}

/* The next line, which must be `wanted` about `name`, for `whom`. */
static sn_status expect(reader *r, which wanted, const char *name, which whom) {
  const instruction *found;
  bool end;
  if (next_line(r, &end) != SN_OK) return r->err->code;
  const char *what = instructions[wanted].name, *of = instructions[whom].name;
  if (end)
    return sn_fail(r->err, SN_BAD_INPUT, "the log ends within a %s: %s of \"%.80s\" is expected", of, what, name);
  if (parse(&r->line, &found, r->err) != SN_OK) return r->err->code;
  if (found == &instructions[wanted] && strcmp(sn__dtr_line_text(&r->line, SN__DTR_NAME), name) == 0) return SN_OK;
  return sn_fail(r->err, SN_BAD_INPUT, "%s where %s of \"%.80s\" is expected, behind a %s", found->name, what, name,
                 of);
}

static sn_status expect_memory(reader *r, const char *name, which whom, int64_t *bytes) {
  if (expect(r, MEMORY, name, whom) != SN_OK) return r->err->code;
  return read_number(&r->line, SN__DTR_MEMORY, 0, bytes, r->err);
}

static void keep_line(reader *r) {
  sn__dtr_line line = r->line;
  r->line = r->call;
  r->call = line;
}

static sn_status do_constant(reader *r) {
  int64_t bytes;
  uint32_t tensor;
  keep_line(r);
  const char *name = sn__dtr_line_text(&r->call, SN__DTR_NAME);
  if (expect_memory(r, name, CONSTANT, &bytes) != SN_OK) return r->err->code;
  if (!make_room((void **)&r->outputs, &r->outputs_room, 1, sizeof *r->outputs)) return sn_fail_memory(r->err);
  r->outputs[0] = (sn_dtr_output){.bytes = (uint64_t)bytes, .view_of = SN_DTR_OWN};
  if (run(r, 0, 0, 1, &tensor) != SN_OK || sn_dtr_program_act(r->program, SN_DTR_PIN, tensor, r->err) != SN_OK)
    return r->err->code;
  return give_name(r, name, tensor);
}

static sn_status find_args(reader *r, const sn__dtr_line *line) {
  uint32_t n = line->values[SN__DTR_ARGS].count;
  if (!make_room((void **)&r->args, &r->args_room, n + 1, sizeof *r->args)) return sn_fail_memory(r->err);
  for (uint32_t i = 0; i < n; i++)
    if (find(r, sn__dtr_line_item(line, SN__DTR_ARGS, i), &r->args[i]) != SN_OK) return r->err->code;
  return SN_OK;
}

/* The lines about a result of r->call. */
static sn_status read_output(reader *r, const char *name, uint32_t n_args, sn_dtr_output *output) {
  int64_t bytes, alias;
  if (expect_memory(r, name, CALL, &bytes) != SN_OK || expect(r, ALIAS, name, CALL) != SN_OK) return r->err->code;
  const char *text = sn__dtr_line_text(&r->line, SN__DTR_ALIAS);
  if (sn__dtr_number(text, "ALIAS", -1, (int64_t)n_args - 1, &alias, r->err) != SN_OK) return r->err->code;
  *output = (sn_dtr_output){.bytes = (uint64_t)bytes, .view_of = alias < 0 ? SN_DTR_OWN : (uint32_t)alias};
  return SN_OK;
}

static sn_status do_call(reader *r) {
  int64_t time;
  uint32_t first;
  keep_line(r);
  uint32_t n_args = r->call.values[SN__DTR_ARGS].count, n = r->call.values[SN__DTR_RESULT].count;
  if (read_number(&r->call, SN__DTR_TIME, 0, &time, r->err) != SN_OK || find_args(r, &r->call) != SN_OK)
    return r->err->code;
  if (!make_room((void **)&r->outputs, &r->outputs_room, n + 1, sizeof *r->outputs)) return sn_fail_memory(r->err);
  for (uint32_t i = 0; i < n; i++)
    if (read_output(r, sn__dtr_line_item(&r->call, SN__DTR_RESULT, i), n_args, &r->outputs[i]) != SN_OK)
      return r->err->code;
  if (run(r, time, n_args, n, &first) != SN_OK) return r->err->code;
  for (uint32_t i = 0; i < n; i++)
    if (give_name(r, sn__dtr_line_item(&r->call, SN__DTR_RESULT, i), first + i) != SN_OK) return r->err->code;
  return SN_OK;
}

/* What MUTATE makes: for each argument that it names a storage of its own, as large as that one's. */
static sn_status find_mutated(reader *r) {
  const sn__dtr_line *line = &r->line;
  uint32_t n = line->values[SN__DTR_MUTATE].count, n_args = line->values[SN__DTR_ARGS].count;
  if (!make_room((void **)&r->outputs, &r->outputs_room, n + 1, sizeof *r->outputs)) return sn_fail_memory(r->err);
  for (uint32_t i = 0; i < n; i++) {
    int64_t arg = 0;
    const char *text = sn__dtr_line_item(line, SN__DTR_MUTATE, i);
    if (sn__dtr_number(text, "MUTATE", 0, (int64_t)n_args - 1, &arg, r->err) != SN_OK) return r->err->code;
    r->outputs[i] = (sn_dtr_output){.bytes = bytes_of(r->program, r->args[arg]), .view_of = SN_DTR_OWN};
  }
  return SN_OK;
}

static sn_status do_mutate(reader *r) {
  const sn__dtr_line *line = &r->line;
  int64_t time;
  uint32_t first = 0, n = line->values[SN__DTR_MUTATE].count, n_args = line->values[SN__DTR_ARGS].count;
  if (read_number(line, SN__DTR_TIME, 0, &time, r->err) != SN_OK || find_args(r, line) != SN_OK ||
      find_mutated(r) != SN_OK || run(r, time, n_args, n, &first) != SN_OK)
    return r->err->code;
  for (uint32_t i = 0; i < n; i++) {
    long arg = strtol(sn__dtr_line_item(line, SN__DTR_MUTATE, i), NULL, 10);
    entry *mutated = find_name(&r->names, sn__dtr_line_item(line, SN__DTR_ARGS, (uint32_t)arg));
    uint32_t old = mutated->tensor;
    mutated->tensor = first + i;
    if (release(r, old) != SN_OK) return r->err->code;
  }
  return SN_OK;
}

static sn_status do_copy(reader *r) {
  uint32_t tensor = 0;
  if (find(r, sn__dtr_line_text(&r->line, SN__DTR_SRC), &tensor) != SN_OK ||
      give_name(r, sn__dtr_line_text(&r->line, SN__DTR_DST), tensor) != SN_OK)
    return r->err->code;
  return hold(r, tensor);
}

static sn_status do_copy_from(reader *r) {
  uint32_t tensor = 0, old = 0;
  const char *to = sn__dtr_line_text(&r->line, SN__DTR_DST);
  if (find(r, sn__dtr_line_text(&r->line, SN__DTR_SRC), &tensor) != SN_OK || find(r, to, &old) != SN_OK)
    return r->err->code;
  find_name(&r->names, to)->tensor = tensor;
  return release(r, old) == SN_OK ? hold(r, tensor) : r->err->code;
}

static sn_status do_release(reader *r) {
  const entry *n = find_name(&r->names, sn__dtr_line_text(&r->line, SN__DTR_NAME));
  return n ? release(r, n->tensor) : SN_OK;
}

static sn_status do_annotate(reader *r) {
  return r->err->code;
}

static sn_status do_stray(reader *r) {
  return sn_fail(r->err, SN_BAD_INPUT, "%s stands behind no CALL or CONSTANT that it is about",
                 sn__dtr_line_text(&r->line, SN__DTR_INSTRUCTION));
}

/* ---- the log ---- */

/* Passes over what stands before the start, whatever it is. */
static sn_status find_start(reader *r) {
  for (;;) {
    const instruction *found = NULL;
    bool end = false;
    sn_err reason = SN_ERR_INIT;
    if (next_line(r, &end) != SN_OK) return r->err->code;
    if (end)
      return sn_fail(r->err, SN_BAD_INPUT,
                     "the log ends before it has started; one of DTR has a line "
                     "{\"ANNOTATION\":\"START\",\"INSTRUCTION\":\"ANNOTATE\"}");
    if (parse(&r->line, &found, &reason) == SN_OK && found == &instructions[ANNOTATE] &&
        strcmp(sn__dtr_line_text(&r->line, SN__DTR_ANNOTATION), "START") == 0)
      return SN_OK;
    if (reason.code == SN_NO_MEMORY) return sn_fail_memory(r->err);
  }
}

static bool is_blank(const sn__dtr_line *line) {
  return line->text[strspn(line->text, " \t\r")] == '\0' && strlen(line->text) == line->bytes;
}

static sn_status read_all(reader *r) {
  bool end = false;
  if (find_start(r) != SN_OK) return r->err->code;
  while (!end && next_line(r, &end) == SN_OK) {
    const instruction *found = NULL;
    if (end || is_blank(&r->line)) continue;
    if (parse(&r->line, &found, r->err) == SN_OK && found) found->run(r);
    if (r->err->code != SN_OK) return r->err->code;
  }
  return r->err->code;
}

static sn_status pin_the_rest(reader *r) {
  for (uint32_t i = 0; i < r->names.count && r->err->code == SN_OK; i++) {
    uint32_t tensor = r->names.list[i].tensor;
    if (r->references[tensor] > 0) sn_dtr_program_act(r->program, SN_DTR_PIN, tensor, r->err);
  }
  if (r->err->code == SN_OK && r->program->n_ops == 0) sn_fail(r->err, SN_BAD_INPUT, "a log without operations");
  return r->err->code == SN_OK ? sn_dtr_program_close(r->program, r->err) : r->err->code;
}

static sn_dtr_program *read_log(const char *name, FILE *in, sn_err *err) {
  reader r = {.name = name, .in = in, .program = sn_dtr_program_new(err), .err = err};
  if (r.program && read_all(&r) == SN_OK) pin_the_rest(&r);
  if (err->code == SN_BAD_INPUT || err->code == SN_BAD_FILE) sn_err_prefix(err, "%.180s:%" PRIu64, name, r.line_number);
  sn__dtr_line_clear(&r.line);
  sn__dtr_line_clear(&r.call);
  clear_names(&r.names);
  free(r.references);
  free(r.args);
  free(r.outputs);
  if (err->code == SN_OK) return r.program;
  sn_dtr_program_free(r.program);
  return NULL;
}

sn_dtr_program *sn_dtr_log_load(const char *path, sn_err *err) {
  FILE *in = sn_path_open(path, err);
  if (!in) return NULL;
  sn_dtr_program *program = read_log(path, in, err);
  fclose(in);
  return program;
}

sn_dtr_program *sn_dtr_log_parse(const char *name, const char *text, size_t bytes, sn_err *err) {
  FILE *in = bytes > 0 ? fmemopen((void *)(uintptr_t)text, bytes, "r") : fopen("/dev/null", "r");
  if (!in) {
    sn_fail_memory(err);
    return NULL;
  }
  sn_dtr_program *program = read_log(name, in, err);
  fclose(in);
  return program;
}
