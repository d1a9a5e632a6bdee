/* Events of a recording: each line becomes a few bytes, and what it says of lives is checked; see read_internal.h. */
#include "models/record/read_internal.h"

#include "models/net/net.h"

#include <inttypes.h>
#include <string.h>

/* ---- lives ---- */

static sn__alive *alive_at(sn__list *list, uint32_t id) {
  return (sn__alive *)list->items + id;
}

static bool is_there(sn__reader *r, uint32_t storage) {
  const sn__alive *s = alive_at(&r->storages, storage);
  return s->life == SN__ALIVE || s->holders > 0;
}

/* A handle or a ghost of a storage begins; their numbers count up as they come. */
static sn_status begin(sn__reader *r, sn__list *list, const cJSON *item, const char *what, uint32_t storage,
                       uint32_t *id) {
  uint64_t number;
  if (sn__read_count(r, item, what, 0, SN_RECORD_MOST_EVENTS - 1, &number) != SN_OK) return r->err->code;
  if (!is_there(r, storage))
    return sn__read_fail(r, "%s %" PRIu64 " is of storage %" PRIu32 ", which is not there", what, number, storage);
  while (list->count <= number)
    if (!sn__list_add(r, list, sizeof(sn__alive))) return r->err->code;
  *id = (uint32_t)number;
  if (alive_at(list, *id)->life != SN__UNBORN) return sn__read_fail(r, "%s %" PRIu32 " was there before", what, *id);
  *alive_at(list, *id) = (sn__alive){.life = SN__ALIVE, .storage = storage};
  alive_at(&r->storages, storage)->holders++;
  return SN_OK;
}

/* An id of something that is alive. */
static sn_status read_alive(const sn__reader *r, sn__list *list, const cJSON *item, const char *what, uint32_t *id) {
  if (sn__read_id(r, item, what, list->count, id) != SN_OK) return r->err->code;
  if (alive_at(list, *id)->life == SN__ALIVE) return SN_OK;
  bool dead = alive_at(list, *id)->life == SN__DEAD;
  return sn__read_fail(r, "%s %" PRIu32 " is %s", what, *id, dead ? "gone already" : "not there yet");
}

static sn_status end(sn__reader *r, sn__list *list, const cJSON *item, const char *what, uint32_t *id) {
  if (read_alive(r, list, item, what, id) != SN_OK) return r->err->code;
  alive_at(list, *id)->life = SN__DEAD;
  if (list != &r->storages) alive_at(&r->storages, alive_at(list, *id)->storage)->holders--;
  return SN_OK;
}

static sn_status bear(sn__reader *r, const cJSON *item, uint32_t *storage) {
  if (sn__read_id(r, item, "storage", r->record->n_storages, storage) != SN_OK) return r->err->code;
  if (alive_at(&r->storages, *storage)->life != SN__UNBORN)
    return sn__read_fail(r, "storage %" PRIu32 " is made twice", *storage);
  if (*storage != r->n_born)
    return sn__read_fail(r, "storage %" PRIu32 " is made where %" PRIu32 " would be: they are numbered as they appear",
                         *storage, r->n_born);
  r->n_born++;
  alive_at(&r->storages, *storage)->life = SN__ALIVE;
  return SN_OK;
}

static sn_status read_storage(const sn__reader *r, const cJSON *item, uint32_t *storage) {
  return sn__read_id(r, item, "storage", r->record->n_storages, storage);
}

static sn_status add_event(sn__reader *r, sn_record_kind kind, uint32_t id, uint32_t other) {
  if (r->events.count == SN_RECORD_MOST_EVENTS)
    return sn__read_fail(r, "more than %u events; record fewer iterations, or one block of the model",
                         SN_RECORD_MOST_EVENTS);
  sn_record_event *event = sn__list_add(r, &r->events, sizeof *event);
  if (!event) return r->err->code;
  *event = sn_record_event_of(kind, id, other);
  return SN_OK;
}

/* ---- operations ---- */

enum { OP_ITEMS = 12 }; /* "o", kernel, phase, node, call, reads, makes, changes, flops, read, written, dtype */

static sn_status add_conv(sn__reader *r, const cJSON *shapes, sn_record_work *work) {
  sn_record_conv conv;
  bool known = false;
  memset(&conv, 0, sizeof conv); /* what lies between its members, too */
  if (sn__read_conv(r, shapes, &conv, &known) != SN_OK || !known) return r->err->code;
  return sn__list_share(r, &r->convs, &r->recent_convs, &conv, sizeof conv, &work->shape);
}

static sn_status add_product(sn__reader *r, const cJSON *shapes, sn_record_work *work) {
  sn_record_product product = {0};
  bool known = false;
  if (sn__read_product(r, shapes, &product, &known) != SN_OK || !known) return r->err->code;
  return sn__list_share(r, &r->products, &r->recent_products, &product, sizeof product, &work->shape);
}

static sn_status add_shape(sn__reader *r, const cJSON *shapes, uint32_t kernel, sn_record_work *work) {
  uint32_t flags = r->record->kernels[kernel].flags;
  if (flags & SN_RECORD_CONVOLUTION) return add_conv(r, shapes, work);
  return flags & SN_RECORD_PRODUCT ? add_product(r, shapes, work) : SN_OK;
}

static sn_status read_work(sn__reader *r, const cJSON *const *at, const cJSON *shapes, sn_record_op *op) {
  sn_record_work work;
  memset(&work, 0, sizeof work); /* what lies behind its members, too */
  work.shape = SN_NONE;
  if (sn__read_size(r, at[8], "flops", &work.flops) != SN_OK ||
      sn__read_size(r, at[9], "bytes read", &work.read) != SN_OK ||
      sn__read_size(r, at[10], "bytes written", &work.written) != SN_OK)
    return r->err->code;
  if (cJSON_IsArray(shapes) && add_shape(r, shapes, op->kernel, &work) != SN_OK) return r->err->code;
  return sn__list_share(r, &r->works, &r->recent_works, &work, sizeof work, &op->work);
}

/* Behind those: shapes of some kernels, a list or null; then, of a sum, 1 or 2 and its first summand. */
static sn_status read_rest(sn__reader *r, const cJSON *at, sn_record_op *op) {
  uint64_t sum;
  if (at && (cJSON_IsArray(at) || cJSON_IsNull(at))) at = at->next;
  if (!at) return SN_OK;
  if (sn__read_count(r, at, "sum", 0, 2, &sum) != SN_OK) return r->err->code;
  if (sum == 0) return SN_OK;
  if (read_storage(r, at->next, &op->summand) != SN_OK) return r->err->code;
  if (!is_there(r, op->summand)) return sn__read_fail(r, "summand: storage %" PRIu32 " is not there", op->summand);
  op->adds_in_place = sum == 2;
  if (op->adds_in_place && op->n_makes != 1)
    return sn__read_fail(r, "a sum in place makes %" PRIu32 " storages, not one", op->n_makes);
  return SN_OK;
}

static sn_status read_refs(sn__reader *r, const cJSON *list, const char *what, bool makes, uint32_t *count) {
  *count = 0;
  if (!cJSON_IsArray(list)) return sn__read_fail(r, "%s: a list of storages was expected", what);
  for (const cJSON *item = list->child; item; item = item->next) {
    uint32_t storage, *ref;
    sn_status status = makes ? bear(r, item, &storage) : read_storage(r, item, &storage);
    if (status != SN_OK) return status;
    if (!makes && !is_there(r, storage)) return sn__read_fail(r, "%s: storage %" PRIu32 " is not there", what, storage);
    if (!(ref = sn__list_add(r, &r->refs, sizeof *ref))) return r->err->code;
    *ref = storage;
    ++*count;
  }
  return SN_OK;
}

static sn_status read_node(const sn__reader *r, const cJSON *item, int32_t *node) {
  if (!cJSON_IsNumber(item) || item->valuedouble < -2 || item->valuedouble > 1e15)
    return sn__read_fail(r, "node: a whole number from -2 was expected");
  *node = item->valuedouble < INT32_MAX ? (int32_t)item->valuedouble : INT32_MAX;
  return SN_OK;
}

static sn_status read_op(sn__reader *r, const cJSON *array) {
  const cJSON *at[OP_ITEMS], *item = array->child;
  for (int i = 0; i < OP_ITEMS; i++, item = item->next) {
    if (!item) return sn__read_fail(r, "an operation has %d items at least, not %d", OP_ITEMS, i);
    at[i] = item;
  }
  uint64_t phase;
  uint32_t kernel;
  const sn_record *record = r->record;
  sn_record_op op = {.first_ref = r->refs.count, .summand = SN_NONE};
  if (sn__read_id(r, at[1], "kernel", record->n_kernels, &kernel) != SN_OK) return r->err->code;
  op.kernel = kernel & 0xffffffu;
  if (sn__read_count(r, at[2], "phase", 0, 2, &phase) != SN_OK || read_node(r, at[3], &op.node) != SN_OK ||
      sn__read_id(r, at[4], "call", record->n_calls, &op.call) != SN_OK ||
      read_refs(r, at[5], "reads", false, &op.n_reads) != SN_OK ||
      read_refs(r, at[6], "makes", true, &op.n_makes) != SN_OK ||
      read_refs(r, at[7], "changes", false, &op.n_changes) != SN_OK || read_work(r, at, item, &op) != SN_OK)
    return r->err->code;
  if (!cJSON_IsString(at[11])) return sn__read_fail(r, "dtype: a text was expected");
  op.fp16 = strcmp(at[11]->valuestring, "float16") == 0;
  op.narrow = op.fp16 || strcmp(at[11]->valuestring, "bfloat16") == 0;
  op.phase = phase & 3u;
  if (read_rest(r, item, &op) != SN_OK) return r->err->code;
  sn_record_op *kept = sn__list_add(r, &r->ops, sizeof *kept);
  if (!kept) return r->err->code;
  *kept = op;
  return add_event(r, SN_RECORD_OP, r->ops.count - 1, 0);
}

/* ---- the others ---- */

static sn_status read_kept(sn__reader *r, const cJSON *array) {
  uint32_t handle = 0, storage = 0;
  const cJSON *item = array->child->next;
  if (read_storage(r, item ? item->next : NULL, &storage) != SN_OK ||
      begin(r, &r->handles, item, "handle", storage, &handle) != SN_OK)
    return r->err->code;
  return add_event(r, SN_RECORD_KEPT, handle, storage);
}

static sn_status read_ghost(sn__reader *r, const cJSON *array) {
  uint32_t storage = 0, ghost = 0;
  const cJSON *item = array->child->next;
  if (read_storage(r, item, &storage) != SN_OK || begin(r, &r->ghosts, item->next, "ghost", storage, &ghost) != SN_OK)
    return r->err->code;
  return add_event(r, SN_RECORD_GHOST, ghost, storage);
}

static sn_status read_ghost_end(sn__reader *r, const cJSON *array) {
  uint32_t storage = 0, ghost = 0;
  const cJSON *item = array->child->next;
  if (read_storage(r, item, &storage) != SN_OK || end(r, &r->ghosts, item->next, "ghost", &ghost) != SN_OK)
    return r->err->code;
  if (alive_at(&r->ghosts, ghost)->storage != storage)
    return sn__read_fail(r, "ghost %" PRIu32 " is not of storage %" PRIu32, ghost, storage);
  return add_event(r, SN_RECORD_GHOST_END, ghost, storage);
}

/* A run of ends: ids behind the first item. */
static sn_status read_ends(sn__reader *r, const cJSON *array, sn__list *lives, const char *what, sn_record_kind kind) {
  uint32_t id;
  for (const cJSON *item = array->child->next; item; item = item->next)
    if (end(r, lives, item, what, &id) != SN_OK || add_event(r, kind, id, 0) != SN_OK) return r->err->code;
  return SN_OK;
}

static sn_status read_birth(sn__reader *r, const cJSON *array) {
  uint32_t storage;
  for (const cJSON *item = array->child->next; item; item = item->next)
    if (bear(r, item, &storage) != SN_OK || add_event(r, SN_RECORD_BIRTH, storage, 0) != SN_OK) return r->err->code;
  return SN_OK;
}

static sn_status read_taken(sn__reader *r, const cJSON *array) {
  uint32_t handle;
  if (read_alive(r, &r->handles, array->child->next, "handle", &handle) != SN_OK) return r->err->code;
  return add_event(r, SN_RECORD_TAKEN, handle, 0);
}

static sn_status add_argument(sn__reader *r, uint32_t number) {
  uint32_t *kept = sn__list_add(r, &r->arguments, sizeof *kept);
  if (!kept) return r->err->code;
  *kept = number;
  return SN_OK;
}

/* How many there are, then each; *first: where that stands. */
static sn_status read_arguments(sn__reader *r, const cJSON *list, uint32_t *first) {
  uint32_t storage;
  *first = r->arguments.count;
  if (!cJSON_IsArray(list)) return sn__read_fail(r, "arguments: a list of storages was expected");
  sn_status status = add_argument(r, 0);
  for (const cJSON *item = list->child; item && status == SN_OK; item = item->next) {
    status = read_storage(r, item, &storage);
    if (status == SN_OK) status = add_argument(r, storage);
  }
  if (status == SN_OK) ((uint32_t *)r->arguments.items)[*first] = r->arguments.count - *first - 1;
  return status;
}

static sn_status read_enter(sn__reader *r, const cJSON *array) {
  uint32_t call, first, *top;
  const cJSON *item = array->child->next;
  if (sn__read_id(r, item, "call", r->record->n_calls, &call) != SN_OK) return r->err->code;
  if (read_arguments(r, item->next, &first) != SN_OK) return r->err->code;
  if (!(top = sn__list_add(r, &r->call_stack, sizeof *top))) return r->err->code;
  *top = call;
  return add_event(r, SN_RECORD_ENTER, call, first);
}

static sn_status read_leave(sn__reader *r, const cJSON *array) {
  uint32_t call, top = r->call_stack.count;
  if (sn__read_id(r, array->child->next, "call", r->record->n_calls, &call) != SN_OK) return r->err->code;
  if (top == 0 || ((const uint32_t *)r->call_stack.items)[top - 1] != call)
    return sn__read_fail(r, "call %" PRIu32 " is left and was not the last that was entered", call);
  r->call_stack.count--;
  return add_event(r, SN_RECORD_LEAVE, call, 0);
}

static sn_status read_iteration(sn__reader *r, const cJSON *array) {
  uint64_t number;
  uint32_t next = r->begun ? r->record->iterations : 0;
  if (sn__read_count(r, array->child->next, "iteration", 0, SN_RECORD_MOST_EVENTS, &number) != SN_OK)
    return r->err->code;
  if (number != next) return sn__read_fail(r, "iteration %" PRIu64 " begins where %" PRIu32 " would", number, next);
  r->begun = true;
  r->record->iterations = next + 1;
  r->record->passes = 0;
  return add_event(r, SN_RECORD_ITERATION, next, 0);
}

/* Which stands at each operation too, but there what a checkpoint runs again in backward is of forward. */
static void note_phase(sn__reader *r, const cJSON *array) {
  const cJSON *phase = array->child->next;
  bool backward = cJSON_IsNumber(phase) && phase->valuedouble == SN_RECORD_BACKWARD;
  r->record->passes += backward && !r->backward;
  r->backward = backward;
}

/* All storages, before the first event: none of them is born. */
static sn_status begin_lives(sn__reader *r) {
  size_t bytes = r->record->n_storages * sizeof(sn__alive);
  if (r->storages.items) return SN_OK;
  if (sn__list_expect(r, &r->storages, r->record->n_storages, sizeof(sn__alive)) != SN_OK) return r->err->code;
  memset(r->storages.items, 0, bytes);
  r->storages.count = r->record->n_storages;
  return SN_OK;
}

sn_status sn__read_event(sn__reader *r, const cJSON *item) {
  const cJSON *first = cJSON_IsArray(item) ? item->child : NULL;
  if (!first || !cJSON_IsString(first) || strlen(first->valuestring) != 1)
    return sn__read_fail(r, "an event is a list that begins with its kind, [\"o\", ..]");
  if (r->ended) return sn__read_fail(r, "an event behind the end");
  if (begin_lives(r) != SN_OK) return r->err->code;
  switch (first->valuestring[0]) {
  case 'o':
    return read_op(r, item);
  case 'b':
    return read_birth(r, item);
  case 'f':
    return read_ends(r, item, &r->storages, "storage", SN_RECORD_LET_GO);
  case 's':
    return read_kept(r, item);
  case 'u':
    return read_ends(r, item, &r->handles, "handle", SN_RECORD_DROPPED);
  case 'g':
    return read_ghost(r, item);
  case 'k':
    return read_taken(r, item);
  case 'h':
    return read_ghost_end(r, item);
  case '<':
    return read_enter(r, item);
  case '>':
    return read_leave(r, item);
  case 'i':
    return read_iteration(r, item);
  case 'e':
    r->ended = true;
    return SN_OK;
  case 'p':
    note_phase(r, item);
    return SN_OK;
  default:
    return sn__read_fail(r, "the event \"%.20s\" is none that this version of snsim knows", first->valuestring);
  }
}

sn_status sn__read_events_end(sn__reader *r) {
  if (!r->ended) return sn__read_fail(r, "the file is cut off: its last line is no [\"e\"]; record it again");
  if (r->call_stack.count > 0) return sn__read_fail(r, "a module is entered and never left");
  if (r->ops.count == 0) return sn__read_fail(r, "nothing was recorded: the file has no operation");
  return SN_OK;
}
