/* Ordered map from a 64-bit key to a 64-bit weight, with the largest weight known for every range of keys.
 *
 * Serves the pool (key: where a hole begins, weight: its size; first fit is "the first key whose weight is at least n")
 * and the checker (key: where a region begins). A treap over an array of nodes; priorities are a hash of the node's
 * number, so the shape depends on nothing but the order of calls. All operations O(log n) expected. Node numbers are
 * stable while a key is in the map: callers may keep their own data beside them.
 *
 * Who says so in the names of the calls may have a key several times, with different weights, which then stand in the
 * order of their weights (sim/memory/caching.c; key: size of a free block, weight: its address; best fit is "the first
 * pair from (bytes, 0) on").
 */
#ifndef SN_BASE_ORDERED_H
#define SN_BASE_ORDERED_H

#include <stdbool.h>
#include <stdint.h>

#define SN_ORDERED_NONE 0u /* no node; nodes count from 1 */

typedef struct sn_ordered_node {
  uint64_t key, weight;
  uint64_t most; /* the largest weight below and including this node */
  uint32_t left, right;
} sn_ordered_node;

typedef struct sn_ordered {
  sn_ordered_node *nodes;
  uint32_t root, used, room;
  uint32_t free; /* list of given-back nodes, linked by `left` */
} sn_ordered;

/* A zeroed struct is an empty map. */
void sn_ordered_clear(sn_ordered *map);
/* False where memory is out, and then `copy` is empty; it needs not be cleared before. */
bool sn_ordered_copy(sn_ordered *copy, const sn_ordered *map);

/* The new node, or SN_ORDERED_NONE where memory is out. The key must not be in the map, or not with that weight. */
uint32_t sn_ordered_insert(sn_ordered *map, uint64_t key, uint64_t weight);
/* The key must be in the map, once. */
void sn_ordered_remove(sn_ordered *map, uint64_t key);
/* The key must be in the map with that weight. */
void sn_ordered_remove_pair(sn_ordered *map, uint64_t key, uint64_t weight);
/* Changes the weight of a key that is in the map, once. */
void sn_ordered_weigh(sn_ordered *map, uint64_t key, uint64_t weight);
/* Changes key and weight of a key that is in the map; none may lie between the two keys. The node stays the same. */
void sn_ordered_move(sn_ordered *map, uint64_t key, uint64_t to, uint64_t weight);

/* The node with the largest key <= key, or the smallest key >= key; SN_ORDERED_NONE where there is none. */
uint32_t sn_ordered_floor(const sn_ordered *map, uint64_t key);
uint32_t sn_ordered_ceiling(const sn_ordered *map, uint64_t key);
/* The nodes with the largest key <= key and with the smallest key > key, where no key is in the map twice. */
void sn_ordered_around(const sn_ordered *map, uint64_t key, uint32_t *below, uint32_t *above);
/* The first node whose key is larger, or the same with a weight of at least `weight`. */
uint32_t sn_ordered_ceiling_pair(const sn_ordered *map, uint64_t key, uint64_t weight);
/* The node with the smallest key whose weight is at least `weight`. */
uint32_t sn_ordered_first(const sn_ordered *map, uint64_t weight);
/* The largest weight among keys < key; 0 where there is none. */
uint64_t sn_ordered_most_below(const sn_ordered *map, uint64_t key);

#endif
