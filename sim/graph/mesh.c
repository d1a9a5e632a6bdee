/* Mesh: its text, and how parameters are cut; see the header. One row a key: how it is read, what it needs, how it is
 * written. */
#include "sim/graph/mesh.h"

#include "base/checked.h"
#include "base/text.h"
#include "base/units.h"
#include "models/net/modules.h"
#include "models/op/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *sn_mesh_word(sn_mesh_axis axis) {
  static const char *const words[SN_MESH_AXES] = {"tp", "fsdp", "dp", "pp"};
  return words[axis];
}

uint32_t sn_mesh_world(const sn_mesh *mesh) {
  uint64_t world = 1;
  for (sn_mesh_axis axis = 0; axis < SN_MESH_AXES; axis++) world *= sn_mesh_size(mesh, axis);
  return world > SN_MESH_MOST ? SN_MESH_MOST : (uint32_t)world;
}

/* ---- text ---- */

typedef struct word {
  const char *word;
  uint32_t value;
} word;

static const word yes_no[] = {{"no", 0}, {"yes", 1}, {NULL, 0}}, reduces[] = {{"fp32", 0}, {"bf16", 1}, {NULL, 0}},
                  syncs[] = {{"last", 0}, {"each", 1}, {NULL, 0}};

typedef enum key_kind { KEY_COUNT, KEY_FLAG, KEY_BYTES } key_kind;

typedef struct key {
  const char *name;
  key_kind kind;
  size_t offset;
  uint64_t least, most, usual; /* of numbers */
  const word *words;           /* that are numbers too; of a flag its two; NULL: none */
  sn_mesh_axis needs;          /* this axis; SN_MESH_AXES: none */
} key;

#define AT(member) offsetof(sn_mesh, member)

static const key keys[] = {
    {"tp", KEY_COUNT, AT(size[SN_MESH_TP]), 1, SN_MESH_MOST, 1, NULL, SN_MESH_AXES},
    {"fsdp", KEY_COUNT, AT(size[SN_MESH_FSDP]), 1, SN_MESH_MOST, 1, NULL, SN_MESH_AXES},
    {"dp", KEY_COUNT, AT(size[SN_MESH_DP]), 1, SN_MESH_MOST, 1, NULL, SN_MESH_AXES},
    {"pp", KEY_COUNT, AT(size[SN_MESH_PP]), 1, SN_MESH_MOST, 1, NULL, SN_MESH_AXES},
    {"zero", KEY_COUNT, AT(zero), 1, 3, 0, NULL, SN_MESH_DP},
    {"reshard", KEY_COUNT, AT(reshard), 2, SN_MESH_MOST, SN_RESHARD_YES, yes_no, SN_MESH_FSDP},
    {"keep-last", KEY_FLAG, AT(keep_last), 0, 1, 0, yes_no, SN_MESH_FSDP},
    {"prefetch", KEY_COUNT, AT(prefetch), 1, SN_MESH_PREFETCH, 1, NULL, SN_MESH_FSDP},
    {"reduce", KEY_FLAG, AT(reduce_narrow), 0, 1, 0, reduces, SN_MESH_FSDP},
    {"sync", KEY_FLAG, AT(sync_each), 0, 1, 0, syncs, SN_MESH_FSDP},
    {"bucket", KEY_BYTES, AT(bucket_bytes), 1 << 20, UINT64_C(1) << 40, SN_MESH_BUCKET, NULL, SN_MESH_DP},
    {"view", KEY_FLAG, AT(view), 0, 1, 0, yes_no, SN_MESH_DP},
};
enum { KEYS = sizeof keys / sizeof keys[0] };

static void set(const key *k, sn_mesh *mesh, uint64_t value) {
  void *at = (char *)mesh + k->offset;
  switch (k->kind) {
  case KEY_COUNT:
    *(uint32_t *)at = (uint32_t)value;
    break;
  case KEY_FLAG:
    *(bool *)at = value != 0;
    break;
  case KEY_BYTES:
    *(uint64_t *)at = value;
    break;
  }
}

static uint64_t get(const key *k, const sn_mesh *mesh) {
  const void *at = (const char *)mesh + k->offset;
  switch (k->kind) {
  case KEY_COUNT:
    return *(const uint32_t *)at;
  case KEY_FLAG:
    return *(const bool *)at;
  case KEY_BYTES:
    break;
  }
  return *(const uint64_t *)at;
}

static sn_mesh usual_mesh(void) {
  sn_mesh mesh = {0};
  for (const key *k = keys; k < keys + KEYS; k++) set(k, &mesh, k->usual);
  return mesh;
}

static const key *find_key(const char *name, size_t length) {
  for (const key *k = keys; k < keys + KEYS; k++)
    if (strlen(k->name) == length && strncmp(k->name, name, length) == 0) return k;
  return NULL;
}

static sn_status fail_key(const char *name, size_t length, sn_err *err) {
  const char *names[KEYS];
  char text[40], hint[80];
  for (int i = 0; i < KEYS; i++) names[i] = keys[i].name;
  snprintf(text, sizeof text, "%.*s", (int)(length < 30 ? length : 30), name);
  return sn_fail(err, SN_BAD_USAGE,
                 "--parallel: \"%s\" is no key%s; keys are tp, fsdp, dp, pp, zero, reshard, keep-last, prefetch, "
                 "reduce, sync, bucket, view",
                 text, sn_text_suggest(text, names, KEYS, hint, sizeof hint));
}

/* What a key may be, for a message. */
static void list_values(const key *k, char *text, size_t room) {
  size_t used = 0;
  *text = '\0';
  for (const word *w = k->words; w && w->word && used < room; w++)
    used += (size_t)snprintf(text + used, room - used, "%s%s", used ? ", " : "", w->word);
  if (k->kind == KEY_COUNT && used < room)
    snprintf(text + used, room - used, "%s%" PRIu64 " to %" PRIu64, used ? ", " : "", k->least, k->most);
  if (k->kind == KEY_BYTES && used < room) snprintf(text + used, room - used, "1MiB to 1TiB");
}

static bool read_value(const key *k, const char *text, uint64_t *value) {
  sn_err ignored = SN_ERR_INIT;
  char *end;
  for (const word *w = k->words; w && w->word; w++)
    if (strcmp(w->word, text) == 0) return *value = w->value, true;
  if (k->kind == KEY_FLAG) return false;
  if (k->kind == KEY_BYTES)
    return sn_parse_bytes(text, k->name, k->least, value, &ignored) == SN_OK && *value <= k->most;
  *value = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : UINT64_MAX;
  return *value != UINT64_MAX && *end == '\0' && *value >= k->least && *value <= k->most;
}

/* An axis without a number. */
static sn_status read_bare(const key *k, bool may_seek, sn_mesh *mesh, sn_err *err) {
  sn_mesh_axis axis = (sn_mesh_axis)(k - keys); /* which stand first, in their order */
  bool sought = axis == SN_MESH_FSDP || axis == SN_MESH_DP;
  if (!sought || !may_seek)
    return sn_fail(err, SN_BAD_USAGE, "--parallel: %s of how many GPUs? Say %s=8%s", k->name, k->name,
                   sought ? ", or let it be found by snsim fit --min gpus" : "");
  if (mesh->sought)
    return sn_fail(err, SN_BAD_USAGE, "--parallel: the size of one axis is looked for; give %s a number", k->name);
  mesh->sought = (uint8_t)(1 + axis);
  return SN_OK;
}

static sn_status read_key(const char *text, size_t length, bool may_seek, sn_mesh *mesh, bool seen[KEYS], sn_err *err) {
  char value[40], values[80];
  uint64_t number;
  size_t name = strcspn(text, "=,");
  const key *k = find_key(text, name);
  if (!k) return fail_key(text, name, err);
  if (seen[k - keys]) return sn_fail(err, SN_BAD_USAGE, "--parallel: %s stands twice; say it once", k->name);
  seen[k - keys] = true;
  if (name == length && k - keys < SN_MESH_AXES) return read_bare(k, may_seek, mesh, err);
  size_t rest = name < length ? length - name - 1 : 0;
  snprintf(value, sizeof value, "%.*s", (int)(rest < 30 ? rest : 30), text + length - rest);
  if (read_value(k, value, &number)) {
    set(k, mesh, number);
    return SN_OK;
  }
  list_values(k, values, sizeof values);
  return sn_fail(err, SN_BAD_USAGE, "--parallel: %s=\"%s\" is none of: %s", k->name, value, values);
}

static sn_status check_world(const sn_mesh *mesh, sn_err *err) {
  uint64_t world = 1;
  for (sn_mesh_axis axis = 0; axis < SN_MESH_AXES; axis++) {
    world *= sn_mesh_size(mesh, axis);
    if (world > SN_MESH_MOST)
      return sn_fail(err, SN_BAD_USAGE, "--parallel: more than %d GPUs in all; take fewer", SN_MESH_MOST);
  }
  return SN_OK;
}

static bool has_axis(const sn_mesh *mesh, sn_mesh_axis axis) {
  return sn_mesh_size(mesh, axis) > 1 || mesh->sought == 1 + axis;
}

/* Keys that say how an axis works which is not there. */
static sn_status check_needs(const sn_mesh *mesh, const bool seen[KEYS], sn_err *err) {
  for (const key *k = keys; k < keys + KEYS; k++) {
    if (!seen[k - keys] || k->needs == SN_MESH_AXES || has_axis(mesh, k->needs)) continue;
    const char *axis = sn_mesh_word(k->needs);
    return sn_fail(err, SN_BAD_USAGE, "--parallel: %s says how %s works, and there is none; add %s=8 or leave it out",
                   k->name, axis, axis);
  }
  return check_world(mesh, err);
}

static const char *word_of(const key *k, uint64_t value) {
  for (const word *w = k->words; w && w->word; w++)
    if (w->value == value) return w->word;
  return NULL;
}

/* As it is read: bytes have a unit. */
static void write_number(const key *k, uint64_t value, char *text, size_t room) {
  bool whole = value % (1 << 20) == 0, bytes = k->kind == KEY_BYTES;
  snprintf(text, room, "%" PRIu64 "%s", bytes && whole ? value >> 20 : value, !bytes ? "" : whole ? "MiB" : "B");
}

static sn_status write_text(sn_mesh *mesh, sn_err *err) {
  size_t used = 0;
  for (const key *k = keys; k < keys + KEYS && used < sizeof mesh->text; k++) {
    uint64_t value = get(k, mesh);
    const char *named = word_of(k, value);
    char number[24];
    bool sought = mesh->sought == 1 + (k - keys);
    if (sought) used += (size_t)snprintf(mesh->text + used, sizeof mesh->text - used, "%s%s", used ? "," : "", k->name);
    if (sought || value == k->usual) continue;
    write_number(k, value, number, sizeof number);
    used += (size_t)snprintf(mesh->text + used, sizeof mesh->text - used, "%s%s=%s", used ? "," : "", k->name,
                             named ? named : number);
  }
  if (used < sizeof mesh->text) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "--parallel: the keys that are asked for take more than %d characters; leave out what "
                 "is so unless asked for",
                 SN_MESH_TEXT - 1);
}

/* What is said of a mesh of one GPU is nothing. */
static sn_status settle(sn_mesh read, sn_mesh *mesh, sn_err *err) {
  bool nothing = sn_mesh_is_one(&read) && !read.sought;
  *read.text = '\0';
  if (!nothing && write_text(&read, err) != SN_OK) return err->code;
  *mesh = nothing ? (sn_mesh){0} : read;
  return SN_OK;
}

static sn_status parse(const char *text, bool may_seek, sn_mesh *mesh, sn_err *err) {
  bool seen[KEYS] = {false};
  sn_mesh read = usual_mesh();
  for (const char *at = text; *at;) {
    size_t length = strcspn(at, ",");
    if (read_key(at, length, may_seek, &read, seen, err) != SN_OK) return err->code;
    at += length + (at[length] == ',');
  }
  return check_needs(&read, seen, err) == SN_OK ? settle(read, mesh, err) : err->code;
}

sn_status sn_mesh_parse(const char *text, sn_mesh *mesh, sn_err *err) {
  return parse(text, false, mesh, err);
}

sn_status sn_mesh_parse_sought(const char *text, sn_mesh *mesh, sn_err *err) {
  return parse(text, true, mesh, err);
}

sn_status sn_mesh_resize(const sn_mesh *mesh, sn_mesh_axis axis, uint32_t size, sn_mesh *to, sn_err *err) {
  sn_mesh read = sn_mesh_is_one(mesh) && !mesh->sought ? usual_mesh() : *mesh;
  read.sought = 0;
  read.size[axis] = size;
  for (const key *k = keys; k < keys + KEYS; k++)
    if (k->needs != SN_MESH_AXES && !has_axis(&read, k->needs)) set(k, &read, k->usual);
  return check_world(&read, err) == SN_OK ? settle(read, to, err) : err->code;
}

/* ---- cuts ---- */

/* Transformers' Conv1D of GPT-2 has its weights turned around: (inputs, outputs). */
static bool is_turned(const sn_net *net, const sn_layer *layer) {
  return layer->op == SN_FC && strncmp(net->name, "gpt2", 4) == 0 && net->modules &&
         net->modules[layer - net->layers].block;
}

/* The first dimension of the first parameter, of so many elements. */
static uint64_t first_side(const sn_net *net, const sn_layer *layer, const sn_parameter *p) {
  const sn_op_def *op = sn_op_of(layer);
  if (p->rows == 0) return p->elements;
  if (op->first_side) return op->first_side(layer, p->elements);
  if (is_turned(net, layer)) return p->columns;
  bool leads = sn_module_library(net) == SN_LIBRARY_TORCHVISION; /* (1, positions, channels) */
  if (layer->op == SN_TOKEN || (layer->op == SN_POSITION && leads)) return 1;
  return p->rows;
}

uint32_t sn_cuts_of(const sn_net *net, const sn_layer *layer, sn_cut cuts[SN_PARAMETER_TENSORS]) {
  sn_parameter p[SN_PARAMETER_TENSORS];
  uint32_t count = sn_parameters_of(layer, p);
  for (uint32_t n = 0; n < count; n++) {
    uint64_t rows = n == 0 ? first_side(net, layer, &p[n]) : p[n].elements;
    cuts[n] = (sn_cut){rows, p[n].elements / rows};
  }
  return count;
}

static uint64_t shard_rows(sn_cut cut, uint32_t ranks) {
  return (cut.rows + ranks - 1) / ranks;
}

uint64_t sn_cut_shard(sn_cut cut, uint32_t ranks) {
  return shard_rows(cut, ranks) * cut.each;
}

uint64_t sn_cut_padded(sn_cut cut, uint32_t ranks) {
  return shard_rows(cut, ranks) * cut.each * ranks;
}
