/* Caching; see the header.
 *
 *   segment   [ taken | free | taken | free ]         expandable   [ taken | free | unmapped ... | taken | unmapped ]
 *
 * Blocks of a segment are a list in the order of their addresses, in which two free neighbours never meet, nor two
 * unmapped ones, nor two that are taken for good. Free blocks of a pool are in bins by size, unmapped ones in a row by
 * address. */
#include "sim/memory/caching.h"

#include "base/checked.h"
#include "sim/memory/bins.h"
#include "sim/memory/pool.h"
#include "sim/memory/row.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What is not done for most requests: out of the way of what is. */
#define COLD __attribute__((noinline, cold))

#define LEAST_BLOCK   ((uint64_t)SN_CACHING_BLOCK)
#define MOST_SMALL    (UINT64_C(1) << 20)  /* kSmallSize */
#define SMALL_SEGMENT (UINT64_C(2) << 20)  /* kSmallBuffer */
#define LARGE_SEGMENT (UINT64_C(20) << 20) /* kLargeBuffer */
#define LEAST_OWN     (UINT64_C(10) << 20) /* kMinLargeAlloc: from here on a segment of its own */
#define ROUND_OWN     (UINT64_C(2) << 20)  /* kRoundLarge */
#define MOST_BYTES    (UINT64_C(1) << 59)  /* more no driver has: keeps all sums of addresses below 2^64 */

/* A stream has a pool of each: pool % SIZES says which it is. */
enum { SMALL, LARGE, SIZES, POOLS = SIZES * SN_CACHING_STREAMS };

/* SPARE: a number without a block; KEPT: taken for good */
typedef enum state { SPARE, TAKEN, KEPT, FREE, UNMAPPED } state;

typedef sn__block block;

typedef sn_caching_size request;

struct sn_caching {
  sn_caching_options options;
  bool chooses;               /* not every free block that is large enough may serve (see choose()) */
  uint64_t least_rest[POOLS]; /* from which on what is left over of a block becomes one */
  uint64_t most_split;        /* of requests from here on nothing is left over */
  uint64_t limit;
  sn_pool addresses; /* of segments */
  block *blocks;     /* from 1 on */
  uint32_t used, room, spare, n_pools;
  sn__row unmapped[POOLS];
  sn_caching_figures figures;
  sn_caching_range range;
  void (*asking)(void *user, uint64_t needed);
  void (*asked)(void *user);
  void *watcher;
  sn__bins free[];
};

/* ---- blocks that are not in use ---- */

/* Puts a block among the free ones or the unmapped ones of its pool. */
static sn_status put(sn_caching *c, uint32_t number, sn_err *err) {
  const block *b = &c->blocks[number];
  if (b->state == UNMAPPED)
    return sn__row_put(&c->unmapped[b->pool], (sn__row_item){b->address, 0, number}) ? SN_OK : sn_fail_memory(err);
  sn__bins_put(&c->free[b->pool], c->blocks, number);
  return SN_OK;
}

static void pull(sn_caching *c, uint32_t number) {
  const block *b = &c->blocks[number];
  if (b->state == UNMAPPED)
    sn__row_pull(&c->unmapped[b->pool], sn__row_find(&c->unmapped[b->pool], b->address, 0));
  else
    sn__bins_pull(&c->free[b->pool], c->blocks, number);
}

/* The number of the first unmapped block from an address on; 0: none. */
static uint32_t unmapped_from(const sn_caching *c, uint8_t pool, uint64_t address) {
  const sn__row *row = &c->unmapped[pool];
  const sn__row_item *item = sn__row_at(row, sn__row_find(row, address, 0));
  return item ? item->number : 0;
}

/* ---- blocks ---- */

/* One that was never used. */
static COLD uint32_t next_number(sn_caching *c, sn_err *err) {
  if (c->used + 1 >= c->room) {
    uint32_t room = c->room ? 2 * c->room : 64;
    block *blocks = room > c->room ? realloc(c->blocks, room * sizeof *blocks) : NULL;
    if (!blocks) return sn_fail_memory(err), 0;
    blocks[0] = (block){.state = SPARE};
    c->blocks = blocks;
    c->room = room;
  }
  return ++c->used;
}

/* A number without a block; 0: memory is out. */
static uint32_t new_number(sn_caching *c, sn_err *err) {
  uint32_t number = c->spare;
  if (!number) return next_number(c, err);
  c->spare = c->blocks[number].after;
  return number;
}

static void drop_block(sn_caching *c, uint32_t number) {
  c->blocks[number].after = c->spare;
  c->blocks[number].state = SPARE;
  c->spare = number;
}

/* Cuts what is behind the first `bytes` off, into a block of its own in the same state, which is put. */
static sn_status cut(sn_caching *c, uint32_t number, uint64_t bytes, sn_err *err) {
  uint32_t fresh = new_number(c, err);
  if (!fresh) return err->code;
  block *b = &c->blocks[number], *rest = &c->blocks[fresh];
  *rest = (block){.address = b->address + bytes,
                  .bytes = b->bytes - bytes,
                  .before = number,
                  .after = b->after,
                  .pool = b->pool,
                  .state = b->state};
  if (rest->after) c->blocks[rest->after].before = fresh;
  b->bytes = bytes;
  b->after = fresh;
  return put(c, fresh, err);
}

/* Block 0 is in no state that others join. */
static bool joins(const sn_caching *c, uint32_t number, uint32_t neighbour) {
  return c->blocks[neighbour].state == c->blocks[number].state;
}

/* Takes a block out of its segment, and makes its number a spare one. What it would tell block 0 is never read. */
static void unlink_block(sn_caching *c, uint32_t number) {
  uint32_t before = c->blocks[number].before, after = c->blocks[number].after;
  c->blocks[before].after = after;
  c->blocks[after].before = before;
  drop_block(c, number);
}

static void absorb(sn_caching *c, uint32_t number, uint32_t neighbour) {
  block *b = &c->blocks[number], *other = &c->blocks[neighbour];
  b->address = sn_min(b->address, other->address);
  b->bytes += other->bytes;
  unlink_block(c, neighbour);
}

/* Joins a block that is not put with its neighbours in the same state, and puts it. */
static sn_status join(sn_caching *c, uint32_t number, sn_err *err) {
  uint32_t before = c->blocks[number].before, after = c->blocks[number].after;
  if (joins(c, number, before)) {
    pull(c, before);
    absorb(c, number, before);
  }
  if (joins(c, number, after)) {
    pull(c, after);
    absorb(c, number, after);
  }
  return put(c, number, err);
}

/* ---- segments ---- */

static void reserve(sn_caching *c, uint64_t bytes) {
  c->figures.reserved_bytes += bytes;
  c->figures.reserved_peak = sn_max(c->figures.reserved_peak, c->figures.reserved_bytes);
}

/* Whether the driver has as much; the limits with which it would say the same become fewer. */
static bool is_left(sn_caching *c, uint64_t bytes) {
  uint64_t needed = c->figures.reserved_bytes + bytes;
  bool left = needed <= c->limit;
  if (left)
    c->range.from = sn_max(c->range.from, needed);
  else
    c->range.below = sn_min(c->range.below, needed);
  return left;
}

/* A segment of `bytes` addresses as one block, which is not put. */
static uint32_t new_segment(sn_caching *c, uint8_t pool, uint64_t bytes, state is, sn_err *err) {
  uint64_t address;
  if (!sn_pool_take(&c->addresses, bytes, UINT64_MAX, &address))
    return sn_fail(err, SN_BUG, "no addresses for a segment of %" PRIu64 " B", bytes), 0;
  c->figures.segments++;
  uint32_t number = new_number(c, err);
  if (number) c->blocks[number] = (block){.address = address, .bytes = bytes, .pool = pool, .state = (uint8_t)is};
  return number;
}

static sn_status drop_segment(sn_caching *c, uint32_t number, sn_err *err) {
  pull(c, number);
  if (sn_pool_give(&c->addresses, c->blocks[number].address, c->blocks[number].bytes) != SN_OK)
    return sn_fail_memory(err);
  c->figures.segments--;
  drop_block(c, number);
  return SN_OK;
}

static bool is_whole(const block *b) {
  return !b->before && !b->after;
}

/* ---- expandable segments ---- */

static uint64_t page_bytes(uint8_t pool) {
  return pool % SIZES == SMALL ? SMALL_SEGMENT : LARGE_SEGMENT;
}

/* Free blocks and unmapped ones from here on, up to `bytes` or the next block in use. */
static bool has_addresses(const sn_caching *c, uint32_t number, uint64_t bytes) {
  uint64_t sum = 0;
  for (; number && sum < bytes && c->blocks[number].state >= FREE; number = c->blocks[number].after)
    sum += c->blocks[number].bytes;
  return sum >= bytes;
}

/* The lowest free or unmapped block from which on `bytes` can be had; a new segment where there is none. Blocks in
 * front of an unmapped one that are free count with it. */
static uint32_t find_addresses(sn_caching *c, request r, sn_err *err) {
  for (uint32_t n = unmapped_from(c, r.pool, 0); n; n = unmapped_from(c, r.pool, c->blocks[n].address + 1)) {
    uint32_t before = c->blocks[n].before;
    uint32_t first = before && c->blocks[before].state == FREE ? before : n;
    if (has_addresses(c, first, r.bytes)) return first;
  }
  uint64_t memory = c->limit + c->options.beside_bytes, span = sn_max(memory + memory / 8, r.bytes);
  uint64_t aligned = sn_ceil_div(span, LARGE_SEGMENT) * LARGE_SEGMENT; /* so that every segment begins with a page */
  uint32_t fresh = new_segment(c, r.pool, aligned, UNMAPPED, err);
  return fresh && put(c, fresh, err) == SN_OK ? fresh : 0;
}

/* Maps the pages of the first `bytes` of an unmapped block, and joins them with what is free beside; false where the
 * driver has too few, or with an error. */
static bool map_pages(sn_caching *c, uint32_t number, uint64_t bytes, sn_err *err) {
  uint64_t page = page_bytes(c->blocks[number].pool);
  bytes = sn_ceil_div(bytes, page) * page;
  if (!is_left(c, bytes)) return false;
  pull(c, number);
  if (bytes < c->blocks[number].bytes && cut(c, number, bytes, err) != SN_OK) return false;
  c->blocks[number].state = FREE;
  reserve(c, bytes);
  return join(c, number, err) == SN_OK;
}

static uint32_t expand(sn_caching *c, request r, sn_err *err) {
  uint32_t number = find_addresses(c, r, err);
  while (number && (c->blocks[number].state == UNMAPPED || c->blocks[number].bytes < r.bytes)) {
    uint64_t have = 0;
    if (c->blocks[number].state == FREE) {
      have = c->blocks[number].bytes;
      number = c->blocks[number].after;
    }
    if (!map_pages(c, number, sn_min(r.bytes - have, c->blocks[number].bytes), err)) return 0;
  }
  if (number) pull(c, number);
  return number;
}

/* Unmaps the pages that lie in a free block as a whole. */
static sn_status unmap_pages(sn_caching *c, uint32_t number, sn_err *err) {
  uint64_t page = page_bytes(c->blocks[number].pool), begin = c->blocks[number].address,
           end = begin + c->blocks[number].bytes, first = sn_ceil_div(begin, page) * page, last = end / page * page;
  if (first >= last) return SN_OK;
  pull(c, number);
  if (last < end && cut(c, number, last - begin, err) != SN_OK) return err->code;
  if (first > begin) {
    if (cut(c, number, first - begin, err) != SN_OK || put(c, number, err) != SN_OK) return err->code;
    number = c->blocks[number].after;
    pull(c, number);
  }
  c->blocks[number].state = UNMAPPED;
  c->figures.reserved_bytes -= last - first;
  if (join(c, number, err) != SN_OK) return err->code;
  return is_whole(&c->blocks[number]) ? drop_segment(c, number, err) : SN_OK;
}

/* ---- taking ---- */

sn_caching_size sn_caching_size_on(uint64_t bytes, uint32_t stream) {
  if (bytes == 0 || bytes > MOST_BYTES) return (sn_caching_size){.bytes = bytes ? UINT64_MAX : 0};
  uint64_t whole = sn_ceil_div(bytes, LEAST_BLOCK) * LEAST_BLOCK;
  uint32_t pool = SIZES * stream + (whole <= MOST_SMALL ? SMALL : LARGE);
  return (sn_caching_size){.bytes = whole, .bin = (uint16_t)sn__bins_of(whole), .pool = (uint8_t)pool};
}

/* Neither nothing nor more than there can be. */
static inline bool is_some(request r) {
  return r.bytes - 1 < MOST_BYTES;
}

/* Of the segment that the driver is asked for. */
static uint64_t segment_bytes(request r) {
  if (r.pool % SIZES == SMALL) return SMALL_SEGMENT;
  return r.bytes < LEAST_OWN ? LARGE_SEGMENT : sn_ceil_div(r.bytes, ROUND_OWN) * ROUND_OWN;
}

/* How large a free block can become where it is. */
static uint64_t expandable_bytes(const sn_caching *c, const block *b) {
  bool more = b->after && c->blocks[b->after].state == UNMAPPED;
  return b->bytes + (more ? c->blocks[b->after].bytes : 0);
}

/* Of expandable segments: from the smallest that is large enough on, a free block whose successor can become less large
 * is passed over, so that what can grow is kept for what needs it. */
static uint32_t pass_over(const sn_caching *c, request r, uint32_t number) {
  for (uint32_t next; (next = sn__bins_next(&c->free[r.pool], c->blocks, number)); number = next)
    if (expandable_bytes(c, &c->blocks[next]) >= expandable_bytes(c, &c->blocks[number])) break;
  return number;
}

/* Where blocks from max_split_bytes on are not cut: whether the request must leave a free block of `bytes` alone. */
static bool is_refused(const sn_caching *c, request r, uint64_t bytes) {
  uint64_t most = c->options.max_split_bytes;
  return r.bytes < most ? bytes >= most : bytes >= r.bytes + LARGE_SEGMENT;
}

/* From the smallest that is large enough: the one that the request gets; 0: none. */
static COLD uint32_t choose(const sn_caching *c, request r, uint32_t number) {
  if (c->options.expandable_segments) number = pass_over(c, r, number);
  return c->options.max_split_bytes && is_refused(c, r, c->blocks[number].bytes) ? 0 : number;
}

/* The number of the smallest free block that is large enough, where the request may have it, which is still put; 0:
 * none. */
static inline uint32_t find_free(const sn_caching *c, request r) {
  uint32_t number = sn__bins_find_in(&c->free[r.pool], c->blocks, r.bytes, r.bin);
  return number && c->chooses ? choose(c, r, number) : number;
}

/* From the driver; 0 where it has too little, or with an error. */
static uint32_t find_new(sn_caching *c, request r, sn_err *err) {
  if (err->code != SN_OK) return 0;
  if (c->options.expandable_segments) return expand(c, r, err);
  uint64_t bytes = segment_bytes(r);
  if (!is_left(c, bytes)) return 0;
  reserve(c, bytes);
  return new_segment(c, r.pool, bytes, FREE, err);
}

/* Of a free block that is a segment, or of its pages. */
static sn_status give_to_driver(sn_caching *c, uint32_t number, sn_err *err) {
  if (c->options.expandable_segments) return unmap_pages(c, number, err);
  if (!is_whole(&c->blocks[number])) return SN_OK;
  c->figures.reserved_bytes -= c->blocks[number].bytes;
  return drop_segment(c, number, err);
}

/* Free blocks that are not cut go back: one that is large enough, else the largest until they are together. False where
 * that is too little; what went back stays there. */
static bool give_uncut(sn_caching *c, request r, sn_err *err) {
  if (!c->options.max_split_bytes || c->options.expandable_segments || err->code != SN_OK) return false;
  uint64_t bytes = sn_max(r.bytes, c->options.max_split_bytes), sum = 0;
  const sn__bins *free = &c->free[r.pool];
  uint32_t enough = sn__bins_find(free, c->blocks, bytes);
  if (enough) return give_to_driver(c, enough, err) == SN_OK;
  while (sum < bytes) {
    uint32_t largest = sn__bins_last(free, c->blocks);
    if (!largest || c->blocks[largest].bytes < c->options.max_split_bytes) return false;
    sum += c->blocks[largest].bytes;
    if (give_to_driver(c, largest, err) != SN_OK) return false;
  }
  return true;
}

/* From the smallest on. What is left of a block whose pages went back is smaller than it was: nothing is met twice. */
static sn_status give_all(sn_caching *c, sn_err *err) {
  for (uint32_t pool = 0; pool < c->n_pools; pool++) {
    const sn__bins *free = &c->free[pool];
    for (uint32_t next, n = sn__bins_first(free, c->blocks); n && err->code == SN_OK; n = next) {
      next = sn__bins_next(free, c->blocks, n);
      give_to_driver(c, n, err);
    }
  }
  c->figures.retries++;
  return err->code;
}

static inline bool leaves_block(const sn_caching *c, request r, uint64_t rest) {
  return rest >= c->least_rest[r.pool] && r.bytes < c->most_split;
}

static inline void allocate(sn_caching *c, uint64_t bytes) {
  c->figures.allocated_bytes += bytes;
  c->figures.allocated_peak = sn_max(c->figures.allocated_peak, c->figures.allocated_bytes);
}

/* A block that is not put, from the driver, to which what is free goes back where it has too little; 0 where that does
 * not help, or with an error. */
static uint32_t find_or_retry(sn_caching *c, request r, sn_err *err) {
  if (c->asking) c->asking(c->watcher, c->figures.reserved_bytes + segment_bytes(r));
  uint32_t found = find_new(c, r, err);
  if (!found && give_uncut(c, r, err)) found = find_new(c, r, err);
  if (!found && err->code == SN_OK && give_all(c, err) == SN_OK) found = find_new(c, r, err);
  return found;
}

/* From the driver. */
static COLD sn_status take_new(sn_caching *c, request r, uint32_t *taken, sn_err *err) {
  uint32_t found = find_or_retry(c, r, err);
  if (c->asked) c->asked(c->watcher);
  if (err->code != SN_OK) return err->code;
  if (!found) return SN_NO_FIT;
  if (leaves_block(c, r, c->blocks[found].bytes - r.bytes) && cut(c, found, r.bytes, err) != SN_OK) return err->code;
  c->blocks[found].state = TAKEN;
  allocate(c, c->blocks[found].bytes);
  *taken = found;
  return SN_OK;
}

/* Takes the first `bytes` of a free block as a block of its own; 0: memory is out. */
static inline uint32_t cut_front(sn_caching *c, uint32_t number, uint64_t bytes, sn_err *err) {
  uint32_t fresh = new_number(c, err);
  if (!fresh) return 0;
  block *b = &c->blocks[number], *front = &c->blocks[fresh];
  uint32_t before = b->before;
  front->address = b->address;
  front->bytes = bytes;
  front->before = before;
  front->after = number;
  front->pool = b->pool;
  front->state = TAKEN;
  c->blocks[before].after = fresh;
  b->before = fresh;
  sn__bins_change(&c->free[b->pool], c->blocks, number, b->address + bytes, b->bytes - bytes);
  return fresh;
}

sn_status sn_caching_take_size(sn_caching *c, const sn_caching_size *size, uint32_t *taken, sn_err *err) {
  const request r = *size;
  *taken = 0;
  if (!is_some(r)) return r.bytes ? SN_NO_FIT : SN_OK;
  uint32_t number = find_free(c, r);
  if (!number) return take_new(c, r, taken, err);
  if (leaves_block(c, r, c->blocks[number].bytes - r.bytes)) {
    number = cut_front(c, number, r.bytes, err);
    if (!number) return err->code;
  } else {
    sn__bins_pull(&c->free[r.pool], c->blocks, number);
    c->blocks[number].state = TAKEN;
  }
  allocate(c, c->blocks[number].bytes);
  *taken = number;
  return SN_OK;
}

/* Moves the end of a block that is taken for good into the free one behind it, and is larger for it; false where there
 * is none in front of that. */
static bool grow_kept(sn_caching *c, request r, uint32_t number) {
  block *b = &c->blocks[number];
  if (c->blocks[b->before].state != KEPT || !leaves_block(c, r, b->bytes - r.bytes)) return false;
  c->blocks[b->before].bytes += r.bytes;
  sn__bins_change(&c->free[r.pool], c->blocks, number, b->address + r.bytes, b->bytes - r.bytes);
  allocate(c, r.bytes);
  return true;
}

sn_status sn_caching_keep_size(sn_caching *c, const sn_caching_size *size, sn_err *err) {
  uint32_t number = is_some(*size) ? find_free(c, *size) : 0;
  if (number && grow_kept(c, *size, number)) return SN_OK;
  sn_status status = sn_caching_take_size(c, size, &number, err);
  if (status != SN_OK || number == 0) return status;
  c->blocks[number].state = KEPT;
  if (joins(c, number, c->blocks[number].before)) absorb(c, number, c->blocks[number].before);
  if (joins(c, number, c->blocks[number].after)) absorb(c, number, c->blocks[number].after);
  return SN_OK;
}

void sn_caching_give(sn_caching *c, uint32_t number) {
  block *b = &c->blocks[number];
  if (number == 0) return;
  sn__bins *free = &c->free[b->pool];
  uint32_t before = b->before, after = b->after;
  c->figures.allocated_bytes -= b->bytes;
  b->state = FREE;
  bool joins_before = joins(c, number, before), joins_after = joins(c, number, after);
  if (!joins_before && !joins_after) {
    sn__bins_put(free, c->blocks, number);
    return;
  }
  if (joins_before && joins_after) {
    sn__bins_pull(free, c->blocks, after);
    absorb(c, number, c->blocks[number].after);
  }
  uint32_t stays = joins_before ? before : after;
  uint64_t address = sn_min(b->address, c->blocks[stays].address), bytes = b->bytes + c->blocks[stays].bytes;
  unlink_block(c, number);
  sn__bins_change(free, c->blocks, stays, address, bytes);
}

/* What is given back joins again what was cut off it: a free block that is there is as before. */
sn_status sn_caching_pass_size(sn_caching *c, const sn_caching_size *size, sn_err *err) {
  uint32_t number = is_some(*size) ? find_free(c, *size) : 0;
  if (number) {
    uint64_t all = c->blocks[number].bytes, used = leaves_block(c, *size, all - size->bytes) ? size->bytes : all;
    c->figures.allocated_peak = sn_max(c->figures.allocated_peak, c->figures.allocated_bytes + used);
    return SN_OK;
  }
  sn_status status = sn_caching_take_size(c, size, &number, err);
  if (status == SN_OK) sn_caching_give(c, number);
  return status;
}

/* ---- the whole ---- */

sn_caching *sn_caching_new(uint64_t limit_bytes, const sn_caching_options *options, sn_err *err) {
  const uint64_t split = options->max_split_bytes;
  if (split && split <= SN_CACHING_SPLIT_LEAST)
    return sn_fail(err, SN_BAD_USAGE, "max_split_size is %" PRIu64 " B; PyTorch takes nothing up to 20 MiB", split),
           NULL;
  const uint32_t n_pools = SIZES * (options->streams > 0 ? options->streams : 1);
  sn_caching *c = calloc(1, sizeof *c + n_pools * sizeof *c->free);
  if (!c) return sn_fail_memory(err), NULL;
  c->n_pools = n_pools;
  c->options = *options;
  c->limit = sn_min(limit_bytes, MOST_BYTES);
  c->range.below = UINT64_MAX;
  c->chooses = options->expandable_segments || split;
  for (int pool = 0; pool < POOLS; pool++)
    c->least_rest[pool] = pool % SIZES == SMALL || options->expandable_segments ? LEAST_BLOCK : MOST_SMALL + 1;
  c->most_split = split && !options->expandable_segments ? split : UINT64_MAX;
  return c;
}

sn_caching *sn_caching_copy(const sn_caching *c, sn_err *err) {
  sn_caching *copy = malloc(sizeof *c + c->n_pools * sizeof *c->free);
  if (!copy) return sn_fail_memory(err), NULL;
  memcpy(copy, c, sizeof *c + c->n_pools * sizeof *c->free);
  copy->asking = NULL;
  copy->asked = NULL;
  copy->room = c->used + c->used / 4 + 64; /* before it has to grow */
  copy->blocks = malloc(copy->room * sizeof *copy->blocks);
  bool good = sn_pool_copy(&copy->addresses, &c->addresses) && copy->blocks;
  for (int pool = 0; pool < POOLS; pool++) good = sn__row_copy(&copy->unmapped[pool], &c->unmapped[pool]) && good;
  if (good) {
    if (c->used > 0) memcpy(copy->blocks, c->blocks, ((size_t)c->used + 1) * sizeof *copy->blocks);
    return copy;
  }
  sn_caching_free(copy);
  return sn_fail_memory(err), NULL;
}

void sn_caching_set_limit(sn_caching *c, uint64_t limit_bytes) {
  c->limit = sn_min(limit_bytes, MOST_BYTES);
}

uint64_t sn_caching_limit(const sn_caching *c) {
  return c->limit;
}

void sn_caching_free(sn_caching *c) {
  if (!c) return;
  for (int pool = 0; pool < POOLS; pool++) sn__row_clear(&c->unmapped[pool]);
  sn_pool_clear(&c->addresses);
  free(c->blocks);
  free(c);
}

sn_extent sn_caching_extent(const sn_caching *c, uint32_t number) {
  return (sn_extent){c->blocks[number].address, c->blocks[number].bytes};
}

void sn_caching_watch(sn_caching *c, void (*asking)(void *user, uint64_t needed), void (*asked)(void *user),
                      void *user) {
  c->asking = asking;
  c->asked = asked;
  c->watcher = user;
}

sn_caching_range sn_caching_limits(const sn_caching *c) {
  return c->range;
}

const sn_caching_figures *sn_caching_look(const sn_caching *c) {
  return &c->figures;
}

uint64_t sn_caching_largest_split(const sn_caching *c) {
  uint64_t largest = 0;
  for (uint32_t n = 1; n <= c->used; n++) {
    const block *b = &c->blocks[n];
    if (b->state == FREE && !is_whole(b)) largest = sn_max(largest, b->bytes);
  }
  return largest;
}

void sn_caching_each(const sn_caching *c, void (*each)(void *user, sn_extent block, bool used, bool first),
                     void *user) {
  for (uint32_t first = 1; first <= c->used; first++) {
    if (c->blocks[first].state == SPARE || c->blocks[first].before) continue;
    for (uint32_t n = first; n; n = c->blocks[n].after)
      if (c->blocks[n].state != UNMAPPED) each(user, sn_caching_extent(c, n), c->blocks[n].state != FREE, n == first);
  }
}

void sn_caching_reset_peaks(sn_caching *c) {
  c->figures.allocated_peak = c->figures.allocated_bytes;
  c->figures.reserved_peak = c->figures.reserved_bytes;
}
