/* What sim/memory/pack.c and its parts share: pack_load.c (times as ranks, the load), pack_orders.c (blocks one after
 * another, in several orders), pack_moves.c (search from there on), pack_beam.c (search from the beginning of time on).
 * Times are ranks among all begins and ends here, so that 32 bits are enough. */
#ifndef SN_SIM_MEMORY_PACK_INTERNAL_H
#define SN_SIM_MEMORY_PACK_INTERNAL_H

#include "sim/memory/pack.h"
#include "sim/memory/shelf.h"

#include <assert.h>

/* Of up to SN__MOST_KEPT blocks the layouts of all orders are kept, some 80 B a block each. */
enum { SN__MOST_KEPT = 4096 };

/* Of a size: at the fullest moment it has no place below. */
typedef struct sn__hint {
  uint64_t bytes, offset;
} sn__hint;

enum { SN__HINTS = 64 };

/* Blocks in the order in which they are placed, and where they end up. Zeroed there is none. */
typedef struct sn__layout {
  uint32_t *order;    /* blocks */
  uint32_t *position; /* per block: in `order` */
  uint64_t *offset;   /* per block */
  uint64_t top;
  uint32_t placed; /* so many of `order` */
  int by;          /* the order; SN__NONE: another one */
  sn__hint *hints; /* SN__HINTS of them */
  sn__shelf shelf;
} sn__layout;

/* In the order in which they are tried: what most often ends the search comes first. */
enum {
  SN__FIRST_FIT,
  SN__BY_LOAD,
  SN__BY_LOAD_LAST,
  SN__BY_AREA,
  SN__BY_SIZE,
  SN__BY_LENGTH,
  SN__BY_BEGIN,
  SN__BY_END,
  SN__ORDERS,
  SN__BY_OFFSET, /* of the best packing, rising: anew in this order, no block lies higher */
  SN__NONE
};

typedef struct sn__packer {
  const sn_block *blocks;
  uint32_t count;                 /* of them */
  uint32_t active;                /* that have a life and bytes: the others are placed nowhere */
  uint32_t *lower, *upper;        /* per active block, as ranks */
  uint64_t *most;                 /* per active block: the largest load over its life */
  uint32_t *by_size;              /* active blocks, the largest first: where every order begins */
  uint64_t *keys;                 /* per block: what is sorted by */
  uint32_t *spare;                /* room to sort */
  uint32_t *stack;                /* blocks, one resting on the other */
  sn__layout layouts[SN__ORDERS]; /* of the orders tried; of more than SN__MOST_KEPT blocks only the first */
  sn__layout *now, next;
  bool memory_out;
  uint64_t *best; /* offsets */
  uint64_t best_top, enough;
  uint64_t most_looks;
  uint32_t fullest; /* when the load is largest, as a rank */
  uint64_t dice;
} sn__packer;

static inline bool sn__pack_is_active(const sn_block *block) {
  return block->lower < block->upper && block->bytes > 0;
}

/* How much work there was: looks at placed blocks. */
static inline uint64_t sn__pack_looks(const sn__packer *p) {
  return p->now->shelf.looks + p->next.shelf.looks;
}

/* From 0 to below `below`, which is not 0: splitmix64. */
static inline uint64_t sn__pack_roll(sn__packer *p, uint64_t below) {
  assert(below > 0);
  uint64_t z = p->dice += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return (z ^ (z >> 31)) % below;
}

/* Fills lower, upper and most; the lower bound in *bound. False where memory is out. */
bool sn__pack_measure(sn__packer *p, uint64_t *bound);

/* To be cleared in either case; false where memory is out. */
bool sn__layout_init(sn__layout *l, uint32_t count);
void sn__layout_clear(sn__layout *l);

/* Makes the layout of an order the one to work on, which goes on with the count of the work; false where memory is out.
 */
bool sn__pack_turn_to(sn__packer *p, int by);
/* Fills the order of p->now. Equal keys: by the second key, then the larger first, then the earlier in the list. */
void sn__pack_sort(sn__packer *p, int by);
/* Empties p->now, with the blocks in that order. */
void sn__pack_begin(sn__packer *p, int by);
/* Places the blocks of a layout from position `from` on; false where one would end above `limit`, or the work is more
 * than is allowed. */
bool sn__pack_place(sn__packer *p, sn__layout *l, uint32_t from, uint64_t limit);
/* Places by an order, on from where that was left; false where one would end above `limit`, or the work is more than is
 * allowed. */
bool sn__pack_place_by(sn__packer *p, int by, uint64_t limit);
/* Of what is placed, if it is better than all before it. */
void sn__pack_keep_best(sn__packer *p, const sn__layout *l);
/* Of measured blocks, whose by_size and fullest it fills. Returns the best order. */
int sn__pack_try_orders(sn__packer *p, const sn_pack_limits *limits);

/* Walks from the best order, then from one after the other; counts the moves. False where memory is out. */
bool sn__pack_try_moves(sn__packer *p, int by, const sn_pack_limits *limits, uint32_t *moves);

/* Looks for a packing hardly above `bound`, the lower one; uses p->now up. False where memory is out. */
bool sn__pack_try_beam(sn__packer *p, const sn_pack_limits *limits, uint64_t bound, uint32_t *tries);

#endif
