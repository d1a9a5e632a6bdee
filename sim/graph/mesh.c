/* Mesh: its text, and how parameters are cut; see the header. One row a key: how it is read, what it needs, how it is
 * written. */
#include "sim/graph/mesh.h"

#include "base/checked.h"
#include "base/text.h"
#include "base/units.h"
#include "models/net/modules.h"
#include "models/op/op.h"
#include "models/record/owners.h"

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
                  schedules[] = {{"1f1b", SN_SCHEDULE_1F1B},
                                 {"gpipe", SN_SCHEDULE_GPIPE},
                                 {"zb-h1", SN_SCHEDULE_ZB_H1},
                                 {NULL, 0}},
                  syncs[] = {{"last", 0}, {"each", 1}, {NULL, 0}}, losses[] = {{"split", 0}, {"whole", 1}, {NULL, 0}},
                  gathers[] = {{"kept", 0}, {"again", 1}, {NULL, 0}},
                  sequences[] = {{"split", 0}, {"whole", 1}, {NULL, 0}};

typedef enum key_kind { KEY_COUNT, KEY_FLAG, KEY_BYTES, KEY_SCHEDULE, KEY_UNITS } key_kind;

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
    {"schedule", KEY_SCHEDULE, AT(schedule), 0, 0, SN_SCHEDULE_1F1B, schedules, SN_MESH_PP},
    {"stages", KEY_UNITS, AT(n_units), 0, 0, 0, NULL, SN_MESH_PP},
    {"view", KEY_FLAG, AT(view), 0, 1, 0, yes_no, SN_MESH_DP},
    {"loss", KEY_FLAG, AT(loss_whole), 0, 1, 0, losses, SN_MESH_TP},
    {"gathered", KEY_FLAG, AT(gather_again), 0, 1, 0, gathers, SN_MESH_TP},
    {"sequence", KEY_FLAG, AT(sequence_whole), 0, 1, 0, sequences, SN_MESH_TP},
};

#define INTERLEAVED "interleaved:"
enum { MOST_CHUNKS = 64 };
enum { KEYS = sizeof keys / sizeof keys[0] };

static void set(const key *k, sn_mesh *mesh, uint64_t value) {
  void *at = (char *)mesh + k->offset;
  switch (k->kind) {
  case KEY_COUNT:
  case KEY_SCHEDULE:
  case KEY_UNITS:
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
  case KEY_SCHEDULE:
  case KEY_UNITS:
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

/* What people ask for that is not simulated, and the nearest that is. */
static const struct {
  const char *names, *what, *nearest;
} others[] = {
    {" cp context ", "context parallel", "tp splits positions between its products, and fsdp shares parameters"},
    {" ep etp expert experts ", "expert parallel", "fsdp shares a mixture's experts like other parameters"},
    {" sp ", "sequence parallel", "tp has it with sequence=split, which holds unless sequence=whole is asked for"},
    {" offload cpu-offload cpu_offload ", "CPU offload of shards", "--strategy pytorch+offload moves saved tensors"},
    {" fsdp1 ", "the FSDP before fully_shard", "fsdp is fully_shard"},
    {" compile ", "a compiled model", "the answer is of the model as it stands"},
    {" float8 fp8 ", "float8", "--precision bf16-master computes in two bytes"},
};

static sn_status fail_known(const char *name, sn_err *err) {
  char spaced[44];
  snprintf(spaced, sizeof spaced, " %s ", name);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strstr(others[i].names, spaced))
      return sn_fail(err, SN_BAD_USAGE, "--parallel: %s (%s) is not simulated; %s", name, others[i].what,
                     others[i].nearest);
  return SN_OK;
}

static sn_status fail_key(const char *name, size_t length, sn_err *err) {
  const char *names[KEYS];
  char text[40], hint[80];
  for (int i = 0; i < KEYS; i++) names[i] = keys[i].name;
  snprintf(text, sizeof text, "%.*s", (int)(length < 30 ? length : 30), name);
  if (fail_known(text, err) != SN_OK) return err->code;
  return sn_fail(err, SN_BAD_USAGE,
                 "--parallel: \"%s\" is no key%s; keys are tp, fsdp, dp, pp, zero, reshard, keep-last, prefetch, "
                 "reduce, sync, bucket, view, loss, gathered, sequence, schedule, stages",
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
  if (k->kind == KEY_SCHEDULE && used < room)
    snprintf(text + used, room - used, ", interleaved:2 to interleaved:%d", MOST_CHUNKS);
  if (k->kind == KEY_BYTES && used < room) snprintf(text + used, room - used, "1MiB to 1TiB");
}

/* "interleaved:2" */
static bool read_chunks(const char *text, uint64_t *value) {
  const char *digits = text + strlen(INTERLEAVED);
  char *end;
  if (strncmp(text, INTERLEAVED, strlen(INTERLEAVED)) != 0 || *digits < '1' || *digits > '9') return false;
  uint64_t chunks = strtoull(digits, &end, 10);
  *value = SN_SCHEDULE_INTERLEAVED + chunks;
  return *end == '\0' && chunks >= 2 && chunks <= MOST_CHUNKS;
}

static bool read_value(const key *k, const char *text, uint64_t *value) {
  sn_err ignored = SN_ERR_INIT;
  char *end;
  for (const word *w = k->words; w && w->word; w++)
    if (sn_text_same(w->word, text)) return *value = w->value, true;
  if (k->kind == KEY_FLAG) return false;
  if (k->kind == KEY_SCHEDULE) return read_chunks(text, value);
  if (k->kind == KEY_BYTES)
    return sn_parse_bytes(text, k->name, k->least, value, &ignored) == SN_OK && *value <= k->most;
  *value = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : UINT64_MAX;
  return *value != UINT64_MAX && *end == '\0' && *value >= k->least && *value <= k->most;
}

/* "8,8,7,9": units of each part. */
static sn_status read_units(const char *text, size_t length, sn_mesh *mesh, sn_err *err) {
  const char *at = text, *end = text + length;
  mesh->n_units = 0;
  for (char *next; at < end && *at >= '0' && *at <= '9' && mesh->n_units < SN_MESH_UNITS; at = next + (next < end)) {
    uint64_t units = strtoull(at, &next, 10);
    if (units < 1 || units > UINT16_MAX || (next < end && *next != ',')) break;
    mesh->units[mesh->n_units++] = (uint16_t)units;
  }
  if (at >= end && mesh->n_units > 0 && end[-1] != ',') return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "--parallel: stages=\"%.*s\" is to be the units of each stage, up to %d of them, as stages=8,8,8,8",
                 (int)(length < 40 ? length : 40), text, SN_MESH_UNITS);
}

/* An axis without a number. */
static sn_status read_bare(const key *k, bool may_seek, sn_mesh *mesh, sn_err *err) {
  sn_mesh_axis axis = (sn_mesh_axis)(k - keys); /* which stand first, in their order */
  bool sought = axis != SN_MESH_TP;
  if (!sought || !may_seek)
    return sn_fail(err, SN_BAD_USAGE, "--parallel: %s of how many GPUs? Say %s=8%s", k->name, k->name,
                   sought     ? ", or let it be found by snsim fit --min gpus"
                   : may_seek ? ", and fsdp, dp or pp beside it without a number, which is looked for: tp=8,fsdp"
                              : "");
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
  if (k->kind == KEY_UNITS) return read_units(text + length - rest, rest, mesh, err);
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

static uint32_t parts_of(const sn_mesh *mesh) {
  return sn_mesh_size(mesh, SN_MESH_PP) * sn_mesh_chunks(mesh);
}

static sn_status check_units(const sn_mesh *mesh, sn_err *err) {
  const char *of = sn_mesh_chunks(mesh) > 1 ? "parts, in the order of the network" : "stages";
  if (mesh->n_units == 0 || mesh->n_units == parts_of(mesh)) return SN_OK;
  if (parts_of(mesh) > SN_MESH_UNITS)
    return sn_fail(err, SN_BAD_USAGE,
                   "--parallel: stages says the units of up to %d %s, and there are %" PRIu32 "; leave it out",
                   SN_MESH_UNITS, of, parts_of(mesh));
  return sn_fail(err, SN_BAD_USAGE,
                 "--parallel: stages has %" PRIu32 " numbers, and there are %" PRIu32 " %s; say one for each",
                 mesh->n_units, parts_of(mesh), of);
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
  return check_world(mesh, err) == SN_OK ? check_units(mesh, err) : err->code;
}

/* ZeRO's stage 3 is fsdp. */
static sn_status settle_zero(sn_mesh *mesh, sn_err *err) {
  if (mesh->zero == 0) return SN_OK;
  if (has_axis(mesh, SN_MESH_FSDP))
    return sn_fail(err, SN_BAD_USAGE,
                   "--parallel: zero says how dp's GPUs share states, and fsdp shares them already; "
                   "leave one of them out");
  if (mesh->view || mesh->bucket_bytes != SN_MESH_BUCKET)
    return sn_fail(err, SN_BAD_USAGE,
                   "--parallel: bucket and view are DistributedDataParallel's, and zero is "
                   "DeepSpeed's; leave them or zero out");
  if (mesh->zero < 3) return SN_OK;
  mesh->size[SN_MESH_FSDP] = mesh->size[SN_MESH_DP];
  mesh->size[SN_MESH_DP] = 1;
  if (mesh->sought) mesh->sought = 1 + SN_MESH_FSDP;
  mesh->zero = 0;
  return SN_OK;
}

/* fully_shard takes a number that divides its ranks, and does with all of them what it does anyway. */
static sn_status check_reshard(sn_mesh *mesh, sn_err *err) {
  uint32_t ranks = sn_mesh_size(mesh, SN_MESH_FSDP);
  if (mesh->sought == 1 + SN_MESH_FSDP || mesh->reshard <= SN_RESHARD_YES) return SN_OK;
  if (ranks % mesh->reshard != 0)
    return sn_fail(err, SN_BAD_USAGE,
                   "--parallel: reshard=%" PRIu32 " does not divide fsdp=%" PRIu32
                   ", and fully_shard refuses it; give a number that does, or yes",
                   mesh->reshard, ranks);
  if (mesh->reshard == ranks) mesh->reshard = SN_RESHARD_YES;
  return SN_OK;
}

static sn_status check_sequence(const sn_mesh *mesh, sn_err *err) {
  if (!mesh->sequence_whole || !mesh->gather_again) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "--parallel: with sequence=whole every rank has what its products read, and gathers nothing; leave "
                 "gathered=again out, or ask for sequence=split");
}

static const char *word_of(const key *k, uint64_t value) {
  for (const word *w = k->words; w && w->word; w++)
    if (w->value == value) return w->word;
  return NULL;
}

/* As it is read: bytes have a unit. */
static void write_number(const key *k, uint64_t value, char *text, size_t room) {
  bool whole = value % (1 << 20) == 0, bytes = k->kind == KEY_BYTES;
  if (k->kind == KEY_SCHEDULE && value > SN_SCHEDULE_INTERLEAVED)
    snprintf(text, room, "%s%" PRIu64, INTERLEAVED, value - SN_SCHEDULE_INTERLEAVED);
  else
    snprintf(text, room, "%" PRIu64 "%s", bytes && whole ? value >> 20 : value, !bytes ? "" : whole ? "MiB" : "B");
}

static void write_units(const sn_mesh *mesh, char *text, size_t room) {
  size_t used = 0;
  *text = '\0';
  for (uint32_t i = 0; i < mesh->n_units && used < room; i++)
    used += (size_t)snprintf(text + used, room - used, "%s%u", i ? "," : "", mesh->units[i]);
}

static sn_status write_text(sn_mesh *mesh, sn_err *err) {
  size_t used = 0;
  for (const key *k = keys; k < keys + KEYS && used < sizeof mesh->text; k++) {
    uint64_t value = get(k, mesh);
    const char *named = word_of(k, value);
    char number[SN_MESH_TEXT];
    bool sought = mesh->sought == 1 + (k - keys);
    if (sought) used += (size_t)snprintf(mesh->text + used, sizeof mesh->text - used, "%s%s", used ? "," : "", k->name);
    if (sought || value == k->usual) continue;
    if (k->kind == KEY_UNITS)
      write_units(mesh, number, sizeof number);
    else
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

/* Of a key with its value; numbers behind a comma belong to that. */
static size_t length_of(const char *text) {
  size_t length = strcspn(text, ",");
  while (text[length] == ',' && text[length + 1] >= '0' && text[length + 1] <= '9')
    length += 1 + strcspn(text + length + 1, ",");
  return length;
}

static sn_status parse(const char *text, bool may_seek, sn_mesh *mesh, sn_err *err) {
  bool seen[KEYS] = {false};
  sn_mesh read = usual_mesh();
  for (const char *at = text; *at;) {
    size_t length = length_of(at);
    if (read_key(at, length, may_seek, &read, seen, err) != SN_OK) return err->code;
    at += length + (at[length] == ',');
  }
  if (check_needs(&read, seen, err) != SN_OK || settle_zero(&read, err) != SN_OK ||
      check_reshard(&read, err) != SN_OK || check_sequence(&read, err) != SN_OK)
    return err->code;
  return settle(read, mesh, err);
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
  if (read.reshard > sn_mesh_size(&read, SN_MESH_FSDP)) read.reshard = SN_RESHARD_YES; /* more than there are */
  bool good =
      check_world(&read, err) == SN_OK && check_units(&read, err) == SN_OK && check_reshard(&read, err) == SN_OK;
  return good ? settle(read, to, err) : err->code;
}

/* ---- parts of the network ---- */

/* Whether the next layer begins another block than the layer before it that is in one. */
static bool begins_block(sn_mesh_parts *p) {
  if (p->net->layers[p->layer].op == SN_FORK) return false; /* which stand where they were put in */
  if (!p->named) return p->net->layers[p->layer].parameters > 0;
  const char *block = p->net->modules[p->layer].block;
  bool begins = block && (!p->last || strcmp(block, p->last) != 0);
  if (block) p->last = block;
  return begins;
}

sn_mesh_parts sn_mesh_parts_of(const sn_net *net, const sn_mesh *mesh) {
  sn_mesh_parts p = {.net = net, .mesh = mesh, .parts = parts_of(mesh), .tail = net->n_layers}, counting;
  if (mesh->n_units > 0) p.filled = mesh->units[0];
  for (uint32_t l = 0; net->modules && l < net->n_layers; l++) p.named = p.named || net->modules[l].block;
  while (p.named && (!net->modules[p.tail - 1].block || net->layers[p.tail - 1].op == SN_FORK)) p.tail--;
  counting = p;
  for (; counting.layer < net->n_layers; counting.layer++) p.blocks += begins_block(&counting);
  return p;
}

/* The part of a block, from 0. */
static uint32_t part_of(sn_mesh_parts *p, uint32_t block) {
  if (p->mesh->n_units == 0) return (uint32_t)((uint64_t)block * p->parts / p->blocks);
  while (block >= p->filled && p->part + 1 < p->parts) p->filled += p->mesh->units[++p->part];
  return p->part;
}

uint32_t sn_mesh_part_next(sn_mesh_parts *p) {
  p->begun += begins_block(p);
  uint32_t part = p->begun == 0 ? 0 : part_of(p, p->begun - 1);
  return p->layer++ >= p->tail ? p->parts - 1 : part;
}

uint32_t sn_mesh_stage_blocks(const sn_net *net, const sn_mesh *mesh, uint32_t stage) {
  sn_mesh_parts p = sn_mesh_parts_of(net, mesh);
  uint32_t stages = sn_mesh_size(mesh, SN_MESH_PP), blocks = 0;
  for (uint32_t l = 0; l < net->n_layers; l++) {
    uint32_t before = p.begun, part = sn_mesh_part_next(&p);
    blocks += p.begun > before && part % stages == stage;
  }
  return blocks;
}

/* As they are where nothing is said. */
static void say_equal_units(uint32_t blocks, const sn_mesh *mesh, char *text, size_t room) {
  sn_mesh equal = {.n_units = mesh->n_units};
  for (uint32_t b = 0; b < blocks; b++) equal.units[(uint64_t)b * equal.n_units / blocks]++;
  write_units(&equal, text, room);
}

sn_status sn_mesh_check_parts(const sn_net *net, const sn_mesh *mesh, sn_err *err) {
  const sn_mesh_parts p = sn_mesh_parts_of(net, mesh);
  char said[SN_MESH_TEXT], works[SN_MESH_TEXT];
  const char *what = p.named ? "blocks" : "layers with parameters"; /* checkpoints may have blocks all the same */
  uint32_t sum = 0;
  if (p.blocks < p.parts)
    return sn_fail(err, SN_BAD_INPUT, "%s has %u %s, too few for %u parts of a pipeline; %u can be asked for",
                   net->name, p.blocks, what, p.parts, p.blocks);
  for (uint32_t i = 0; i < mesh->n_units; i++) sum += mesh->units[i];
  if (mesh->n_units == 0 || sum == p.blocks) return SN_OK;
  write_units(mesh, said, sizeof said);
  say_equal_units(p.blocks, mesh, works, sizeof works);
  return sn_fail(err, SN_BAD_USAGE,
                 "--parallel: stages=%s are %" PRIu32 " %s, and %s has %" PRIu32 "; stages=%s is as many in each", said,
                 sum, what, net->name, p.blocks, works);
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

/* Whether an FC's input is split by features: from one product to the next what lies between leaves features where they
 * are, and heads of an attention are features. Every other FC of a row of them makes such values. */
static bool reads_features(const sn_net *net, const sn_layer *fc) {
  bool features = false;
  for (const sn_layer *at = fc;;) {
    at = &net->layers[sn_layer_source(net, at, 0)];
    switch (at->op) {
    case SN_FC:
      features = !features;
      break;
    case SN_ATTENTION:
      return !features;
    case SN_ACT:
    case SN_MUL:
    case SN_DROPOUT:
    case SN_ROTARY:
    case SN_RESHAPE:
    case SN_RESIZE:
    case SN_SLICE:
    case SN_CONCAT:
      break;
    default:
      return features;
    }
  }
}

sn_division sn_division_of(const sn_net *net, const sn_layer *layer) {
  if (layer->op == SN_EMBEDDING) return SN_BY_WORDS;
  if (layer->op != SN_FC) return SN_UNDIVIDED;
  return reads_features(net, layer) ? SN_BY_INPUTS : SN_BY_OUTPUTS;
}

bool sn_mesh_updates_apart(const sn_mesh *mesh, const sn_net *net, const sn_layer *layer) {
  bool replicated = sn_mesh_size(mesh, SN_MESH_DP) > 1 && sn_mesh_size(mesh, SN_MESH_FSDP) == 1;
  return mesh->sequence_whole && !replicated && sn_division_of(net, layer) == SN_UNDIVIDED;
}

/* Of the n-th parameter, the first of which has words or outputs for rows. Biases are by outputs. */
static sn_cut divide(sn_cut cut, uint32_t n, sn_division split, bool turned, uint32_t tp) {
  bool by_rows = split == SN_BY_INPUTS ? turned : !turned;
  if (tp <= 1 || split == SN_UNDIVIDED || (n > 0 && split == SN_BY_INPUTS)) return cut;
  *(by_rows || n > 0 ? &cut.rows : &cut.each) = sn_ceil_div(by_rows || n > 0 ? cut.rows : cut.each, tp);
  return cut;
}

uint32_t sn_cuts_of(const sn_net *net, const sn_layer *layer, uint32_t tp, sn_cut cuts[SN_PARAMETER_TENSORS]) {
  sn_parameter p[SN_PARAMETER_TENSORS];
  uint32_t count = sn_parameters_of(layer, p);
  sn_division split = tp > 1 && count > 0 ? sn_division_of(net, layer) : SN_UNDIVIDED;
  for (uint32_t n = 0; n < count; n++) {
    uint64_t rows = n == 0 ? first_side(net, layer, &p[n]) : p[n].elements;
    cuts[n] = divide((sn_cut){rows, p[n].elements / rows}, n, split, is_turned(net, layer), tp);
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

static sn_cut cut_of(const sn_record_parameter *p) {
  return (sn_cut){p->rows, p->elements / p->rows};
}

/* Of several parameters in one storage it is all of theirs, or one's. */
uint64_t sn_cut_recorded(const struct sn_recorded *w, uint32_t storage, uint64_t bytes, uint32_t ranks) {
  const sn_record_parameter *parameters = w->record->parameters;
  uint32_t owner = storage < w->record->n_storages ? w->owners->of[storage] : SN_NONE;
  uint64_t elements = 0, own = 0;
  if (owner == SN_NONE || parameters[owner].elements == 0 || parameters[owner].rows == 0) return bytes;
  for (uint32_t p = w->owners->of[parameters[owner].storage]; p != SN_NONE; p = w->owners->next[p]) {
    if (parameters[p].rows == 0) return bytes;
    elements += parameters[p].elements;
    own += sn_cut_shard(cut_of(&parameters[p]), ranks);
  }
  if (bytes == elements * w->owners->width[owner]) return own * w->owners->width[owner];
  uint64_t width = bytes / parameters[owner].elements;
  bool fits = bytes % parameters[owner].elements == 0 && width <= sizeof(double);
  return fits ? sn_cut_shard(cut_of(&parameters[owner]), ranks) * width : bytes;
}
