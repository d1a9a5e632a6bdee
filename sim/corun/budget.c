/* Memory that a co-run schedule may take; see the header. */
#include "sim/corun/budget.h"

#include "base/arena.h"
#include "base/checked.h"
#include "sim/corun/number_set.h"

#include <string.h>

/* A stretch of serial positions. Sums are from the right: what is added at a position counts for all up to it. */
typedef struct node {
  int64_t sum;  /* of all that is added in it */
  int64_t most; /* of the columns in it that have not started; STARTED: all have */
} node;

#define STARTED (INT64_MIN / 2)

enum { NEAR = 16 };

typedef struct life {
  uint64_t bytes;
  uint32_t made_by;
  uint32_t first_user, n_users; /* users[first_user ..], in serial order */
  uint32_t n_before;  /* its users that have not started are among the first so many, the last of which has not */
  uint32_t n_waiting; /* users that have not started */
  uint32_t n_running; /* users that have not ended */
} life;

/* An operation that must not start as long as a column stays as high as it is. In the list of those of its column. */
typedef struct sleeper {
  uint32_t column; /* SN_NONE: it is awake */
  uint32_t before, behind;
} sleeper;

struct sn__budget {
  const sn_ops *ops;
  life *lives;
  uint32_t *users;
  uint64_t *made_bytes; /* per operation: of the lives it makes */
  uint64_t *last_bytes; /* per operation: of the lives that none behind it uses, of those that have not started */
  uint64_t *only_bytes; /* per operation: of the lives that no other of those uses */
  bool *has_started;
  sleeper *sleepers;        /* per operation */
  uint32_t *asleep_at;      /* per position: the first that sleeps for it; SN_NONE: none */
  sn__number_set slept_for; /* positions that have such */
  uint32_t *changed, n_changed;
  uint32_t n_leaves;   /* a power of 2 */
  node *tree, *serial; /* tree[1] is the root, tree[n_leaves + position] a leaf; `serial`: with nothing started */
  uint64_t limit, live, peak;
  int64_t first_column; /* of the serially first that has not started */
  int64_t near_columns; /* the highest of those NEAR from there on */
  uint32_t n_running, first;
  struct sn_arena *arena;
};

static node join(const node *left, const node *right) {
  int64_t most_left = left->most == STARTED ? STARTED : left->most + right->sum;
  return (node){left->sum + right->sum, most_left > right->most ? most_left : right->most};
}

/* Adds bytes to all columns up to a position, which has started or has not. */
static void add(sn__budget *b, uint32_t position, int64_t bytes, bool has_started) {
  node *leaf = &b->tree[b->n_leaves + position];
  leaf->sum += bytes;
  leaf->most = has_started ? STARTED : leaf->sum;
  for (uint32_t at = (b->n_leaves + position) / 2; at > 0; at /= 2)
    b->tree[at] = join(&b->tree[2 * (size_t)at], &b->tree[2 * (size_t)at + 1]);
}

static int64_t column_at(const sn__budget *b, uint32_t position) {
  int64_t sum = b->tree[b->n_leaves + position].sum;
  for (uint32_t at = b->n_leaves + position; at > 1; at /= 2)
    if (at % 2 == 0) sum += b->tree[at + 1].sum;
  return sum;
}

/* How many of the life's first users are left when `op` has started too, so that the last of them has not. */
static uint32_t users_before(const sn__budget *b, const life *l, uint32_t op) {
  uint32_t n = l->n_before;
  while (n > 0) {
    uint32_t user = b->users[l->first_user + n - 1];
    if (user != op && !b->has_started[user]) break;
    n--;
  }
  return n;
}

/* The columns as they are when `op` starts too, or back as they were. Those before the serially first have all started:
 * it does not matter how high they are. */
static void change(sn__budget *b, uint32_t op, bool starts) {
  const sn_op_node *o = &b->ops->nodes[op];
  for (uint32_t i = 0; i < o->n_uses && op != b->first; i++) {
    const life *l = &b->lives[b->ops->uses[o->first_use + i]];
    int64_t bytes = starts ? (int64_t)l->bytes : -(int64_t)l->bytes;
    if (l->made_by == op) add(b, op - 1, bytes, b->has_started[op - 1]);
    if (b->users[l->first_user + l->n_before - 1] != op) continue;
    uint32_t n = users_before(b, l, op);
    add(b, op, -bytes, starts);
    if (n > 0) add(b, b->users[l->first_user + n - 1], bytes, false);
  }
  add(b, op, 0, starts);
}

/* Operations in serial order, lives in the order of their makers: users come out in serial order. */
static void find_users(sn__budget *b) {
  const sn_ops *ops = b->ops;
  uint32_t first = 0;
  for (uint32_t i = 0; i < ops->n_lives; i++) {
    b->lives[i] = (life){.bytes = sn_life_bytes(ops, i), .made_by = ops->lives[i].made_by, .first_user = first};
    first += ops->lives[i].n_users;
    b->made_bytes[b->lives[i].made_by] += b->lives[i].bytes;
  }
  for (uint32_t op = 0; op < ops->n_ops; op++)
    for (uint32_t i = 0; i < ops->nodes[op].n_uses; i++) {
      life *l = &b->lives[ops->uses[ops->nodes[op].first_use + i]];
      b->users[l->first_user + l->n_users++] = op;
    }
}

static void build_tree(sn__budget *b) {
  for (uint32_t i = 0; i < b->n_leaves; i++) b->tree[b->n_leaves + i].most = STARTED;
  for (uint32_t i = 0; i < b->ops->n_lives; i++) {
    const life *l = &b->lives[i];
    b->tree[b->n_leaves + b->users[l->first_user + l->n_users - 1]].sum += (int64_t)l->bytes;
    if (l->made_by > 0) b->tree[b->n_leaves + l->made_by - 1].sum -= (int64_t)l->bytes;
  }
  for (uint32_t op = 0; op < b->ops->n_ops; op++) b->tree[b->n_leaves + op].most = b->tree[b->n_leaves + op].sum;
  for (uint32_t at = b->n_leaves - 1; at > 0; at--)
    b->tree[at] = join(&b->tree[2 * (size_t)at], &b->tree[2 * (size_t)at + 1]);
  memcpy(b->serial, b->tree, 2 * (size_t)b->n_leaves * sizeof *b->tree);
}

static bool allocate(sn__budget *b) {
  const sn_ops *ops = b->ops;
  b->n_leaves = 2;
  while (b->n_leaves < ops->n_ops) b->n_leaves *= 2;
  b->lives = sn_arena_alloc(b->arena, ops->n_lives, sizeof *b->lives);
  b->users = sn_arena_alloc(b->arena, ops->n_uses, sizeof *b->users);
  b->made_bytes = sn_arena_alloc(b->arena, ops->n_ops, sizeof *b->made_bytes);
  b->has_started = sn_arena_alloc(b->arena, ops->n_ops, sizeof *b->has_started);
  b->sleepers = sn_arena_alloc(b->arena, ops->n_ops, sizeof *b->sleepers);
  b->asleep_at = sn_arena_alloc(b->arena, ops->n_ops, sizeof *b->asleep_at);
  b->last_bytes = sn_arena_alloc(b->arena, ops->n_ops, sizeof *b->last_bytes);
  b->only_bytes = sn_arena_alloc(b->arena, ops->n_ops, sizeof *b->only_bytes);
  b->changed = sn_arena_alloc(b->arena, 2 * (size_t)ops->n_ops + 2 * (size_t)ops->n_uses, sizeof *b->changed);
  b->tree = sn_arena_alloc(b->arena, 2 * (size_t)b->n_leaves, sizeof *b->tree);
  b->serial = sn_arena_alloc(b->arena, 2 * (size_t)b->n_leaves, sizeof *b->serial);
  return b->lives && b->users && b->made_bytes && b->has_started && b->sleepers && b->asleep_at && b->last_bytes &&
         b->only_bytes && b->changed && b->tree && b->serial && sn__number_set_new(&b->slept_for, ops->n_ops, b->arena);
}

sn__budget *sn__budget_new(const sn_ops *ops, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn__budget *b = arena ? sn_arena_alloc(arena, 1, sizeof *b) : NULL;
  if (b) {
    b->ops = ops;
    b->arena = arena;
    if (allocate(b)) {
      find_users(b);
      build_tree(b);
      return b;
    }
  }
  sn_arena_free(arena);
  sn_fail_memory(err);
  return NULL;
}

void sn__budget_free(sn__budget *budget) {
  if (budget) sn_arena_free(budget->arena);
}

uint64_t sn__budget_serial_peak(const sn__budget *b) {
  return b->serial[1].most > 0 ? (uint64_t)b->serial[1].most : 0;
}

/* The highest of the columns before a position. */
static int64_t most_before(const sn__budget *b, uint32_t position) {
  if (position >= b->n_leaves) return b->tree[1].most;
  int64_t behind = column_at(b, position), most = STARTED;
  for (uint32_t at = b->n_leaves + position; at > 1; at /= 2) {
    if (at % 2 == 0) continue;
    const node *left = &b->tree[at - 1];
    if (left->most != STARTED && left->most + behind > most) most = left->most + behind;
    behind += left->sum;
  }
  return most;
}

static void find_first(sn__budget *b) {
  uint32_t before = b->first, n = b->ops->n_ops;
  while (b->first < n && b->has_started[b->first]) b->first++;
  if (b->first == n || b->limit == SN_BUDGET_ANY) return;
  b->first_column = column_at(b, b->first);
  b->near_columns = most_before(b, b->first + NEAR);
  if (b->first == before) return;
  b->changed[b->n_changed++] = b->first;
  for (uint32_t op = before + NEAR; op < b->first + NEAR && op < n; op++) b->changed[b->n_changed++] = op;
}

void sn__budget_begin(sn__budget *b, uint64_t bytes) {
  memcpy(b->tree, b->serial, 2 * (size_t)b->n_leaves * sizeof *b->tree);
  memset(b->has_started, 0, b->ops->n_ops * sizeof *b->has_started);
  for (uint32_t op = 0; op < b->ops->n_ops; op++) {
    b->sleepers[op].column = SN_NONE;
    b->asleep_at[op] = SN_NONE;
  }
  sn__number_set_clear(&b->slept_for);
  memset(b->last_bytes, 0, b->ops->n_ops * sizeof *b->last_bytes);
  memset(b->only_bytes, 0, b->ops->n_ops * sizeof *b->only_bytes);
  for (uint32_t i = 0; i < b->ops->n_lives; i++) {
    life *l = &b->lives[i];
    l->n_before = l->n_waiting = l->n_running = l->n_users;
    b->last_bytes[b->users[l->first_user + l->n_users - 1]] += l->bytes;
    if (l->n_users == 1) b->only_bytes[l->made_by] += l->bytes;
  }
  b->limit = bytes;
  b->live = b->peak = 0;
  b->n_running = b->first = b->n_changed = 0;
  find_first(b);
}

/* The last column in a stretch that is above `bytes`, of which there is one; `behind`: the sum of all to the right. */
static uint32_t last_above(const sn__budget *b, uint32_t at, int64_t behind, int64_t bytes) {
  while (at < b->n_leaves) {
    const node *left = &b->tree[2 * (size_t)at], *right = left + 1;
    bool is_right = right->most != STARTED && right->most + behind > bytes;
    if (!is_right) behind += right->sum;
    at = 2 * at + is_right;
  }
  return at - b->n_leaves;
}

/* The last column before a position that has not started and is above `bytes`; SN_NONE: there is none. */
static uint32_t last_above_before(const sn__budget *b, uint32_t position, int64_t bytes) {
  int64_t behind = b->tree[b->n_leaves + position].sum;
  for (uint32_t at = b->n_leaves + position; at > 1; at /= 2)
    if (at % 2 == 0) behind += b->tree[at + 1].sum;
  for (uint32_t at = b->n_leaves + position; at > 1; at /= 2) {
    if (at % 2 == 0) continue;
    const node *left = &b->tree[at - 1];
    if (left->most != STARTED && left->most + behind > bytes) return last_above(b, at - 1, behind, bytes);
    behind += left->sum;
  }
  return SN_NONE;
}

/* SN_NONE where what has not started, but `op`, stays within the budget one after another; else a column that does not,
 * and will not as long as it is as high: the last, which will start late. Only columns before `op` get higher, all by
 * what it makes, some of them lower by what it is the last to use: mostly that says enough. */
static uint32_t blocking_column(sn__budget *b, uint32_t op) {
  if (op == b->first || b->made_bytes[op] == 0) return SN_NONE;
  int64_t limit = (int64_t)sn_min(b->limit, INT64_MAX), made = (int64_t)b->made_bytes[op];
  uint32_t column = last_above_before(b, op, limit - made);
  if (column == SN_NONE || b->last_bytes[op] == 0) return column;
  column = last_above_before(b, op, limit - made + (int64_t)b->last_bytes[op]);
  if (column != SN_NONE) return column;
  change(b, op, true);
  if (b->tree[1].most > limit) column = last_above(b, 1, 0, limit);
  change(b, op, false);
  return column;
}

static void put_to_sleep(sn__budget *b, uint32_t op, uint32_t column) {
  uint32_t behind = b->asleep_at[column];
  b->sleepers[op] = (sleeper){.column = column, .before = SN_NONE, .behind = behind};
  if (behind == SN_NONE)
    sn__number_set_put(&b->slept_for, column);
  else
    b->sleepers[behind].before = op;
  b->asleep_at[column] = op;
}

static void wake(sn__budget *b, uint32_t op) {
  sleeper s = b->sleepers[op];
  if (s.column == SN_NONE) return;
  if (s.behind != SN_NONE) b->sleepers[s.behind].before = s.before;
  if (s.before != SN_NONE)
    b->sleepers[s.before].behind = s.behind;
  else if ((b->asleep_at[s.column] = s.behind) == SN_NONE)
    sn__number_set_remove(&b->slept_for, s.column);
  b->sleepers[op].column = SN_NONE;
  b->changed[b->n_changed++] = op;
}

/* Those that sleep for columns from .. to. */
static void wake_all(sn__budget *b, uint32_t from, uint32_t to) {
  uint32_t column;
  while ((column = sn__number_set_next(&b->slept_for, from)) <= to && column != SN_NONE)
    while (b->asleep_at[column] != SN_NONE) wake(b, b->asleep_at[column]);
}

sn__bytes sn__budget_adds(const sn__budget *b, uint32_t op) {
  int64_t made = (int64_t)b->made_bytes[op];
  return (sn__bytes){.now = made,
                     .next = op == b->first ? INT64_MIN : made - (int64_t)b->only_bytes[op],
                     .soon = op < b->first + NEAR ? INT64_MIN : made - (int64_t)b->last_bytes[op]};
}

sn__bytes sn__budget_room(const sn__budget *b) {
  if (b->limit == SN_BUDGET_ANY) return (sn__bytes){INT64_MAX - 1, INT64_MAX - 1, INT64_MAX - 1};
  int64_t limit = (int64_t)sn_min(b->limit, INT64_MAX - 1);
  return (sn__bytes){limit - (int64_t)b->live, limit - b->first_column, limit - b->near_columns};
}

bool sn__budget_allows(sn__budget *b, uint32_t op) {
  if (b->limit == SN_BUDGET_ANY || (b->n_running == 0 && op == b->first)) return true;
  sn__bytes adds = sn__budget_adds(b, op), room = sn__budget_room(b);
  if (b->sleepers[op].column != SN_NONE || adds.now > room.now || adds.next > room.next || adds.soon > room.soon)
    return false;
  uint32_t column = blocking_column(b, op);
  if (column != SN_NONE) put_to_sleep(b, op, column);
  return column == SN_NONE;
}

bool sn__budget_sleeps(const sn__budget *b, uint32_t op) {
  return b->sleepers[op].column != SN_NONE;
}

uint32_t sn__budget_changed(const sn__budget *b, const uint32_t **ops) {
  *ops = b->changed;
  return b->n_changed;
}

/* Somebody who uses a life starts: columns get lower, and who is now the last to use it, or the only one, makes columns
 * lower that it would not have before. */
static void start_use(sn__budget *b, life *l, uint32_t op) {
  bool was_last = b->users[l->first_user + l->n_before - 1] == op;
  l->n_waiting--;
  l->n_before = users_before(b, l, op);
  uint32_t last = l->n_before > 0 ? b->users[l->first_user + l->n_before - 1] : SN_NONE;
  if (was_last && op > 0) wake_all(b, last == SN_NONE ? 0 : last + 1, op - 1);
  if (last == SN_NONE) return;
  wake(b, last);
  if (!was_last && l->n_waiting > 1) return;
  if (was_last) b->last_bytes[last] += l->bytes;
  if (l->n_waiting == 1) b->only_bytes[last] += l->bytes;
  b->changed[b->n_changed++] = last;
}

static void start_columns(sn__budget *b, uint32_t op) {
  change(b, op, true);
  wake_all(b, op, op);
  const sn_op_node *o = &b->ops->nodes[op];
  for (uint32_t i = 0; i < o->n_uses; i++) start_use(b, &b->lives[b->ops->uses[o->first_use + i]], op);
}

void sn__budget_start(sn__budget *b, uint32_t op) {
  b->n_changed = 0;
  if (b->limit != SN_BUDGET_ANY) start_columns(b, op);
  b->has_started[op] = true;
  find_first(b);
  b->n_running++;
  b->live += b->made_bytes[op];
  b->peak = sn_max(b->peak, b->live);
}

void sn__budget_end(sn__budget *b, uint32_t op) {
  const sn_op_node *o = &b->ops->nodes[op];
  for (uint32_t i = 0; i < o->n_uses; i++) {
    life *l = &b->lives[b->ops->uses[o->first_use + i]];
    if (--l->n_running == 0) b->live -= l->bytes;
  }
  b->n_running--;
}

uint32_t sn__budget_first(const sn__budget *b) {
  return b->first < b->ops->n_ops ? b->first : SN_NONE;
}

uint64_t sn__budget_peak(const sn__budget *b) {
  return b->peak;
}
