/* Treap; see the header. Recursion is as deep as the tree: about 2 log2(n). */
#include "base/ordered.h"

#include <stdlib.h>
#include <string.h>

static uint32_t priority(uint32_t node) {
  uint32_t x = node * 2654435761u;
  x ^= x >> 16;
  return x * 2246822519u;
}

static void refresh(sn_ordered *map, uint32_t n) {
  sn_ordered_node *node = &map->nodes[n];
  uint64_t most = node->weight;
  if (node->left && map->nodes[node->left].most > most) most = map->nodes[node->left].most;
  if (node->right && map->nodes[node->right].most > most) most = map->nodes[node->right].most;
  node->most = most;
}

static uint32_t take_node(sn_ordered *map) {
  if (map->free) {
    uint32_t n = map->free;
    map->free = map->nodes[n].left;
    return n;
  }
  if (map->used + 1 >= map->room) {
    uint32_t room = map->room ? 2 * map->room : 64;
    sn_ordered_node *nodes = room > map->room ? realloc(map->nodes, room * sizeof *nodes) : NULL;
    if (!nodes) return SN_ORDERED_NONE;
    map->nodes = nodes;
    map->room = room;
  }
  return ++map->used;
}

void sn_ordered_clear(sn_ordered *map) {
  free(map->nodes);
  memset(map, 0, sizeof *map);
}

static bool is_before(const sn_ordered_node *node, uint64_t key, uint64_t weight) {
  return node->key < key || (node->key == key && node->weight < weight);
}

/* Splits tree `n` into what is before and what is behind a pair that is not in it. */
static void split(sn_ordered *map, uint32_t n, uint64_t key, uint64_t weight, uint32_t *below, uint32_t *above) {
  if (!n) {
    *below = *above = SN_ORDERED_NONE;
  } else if (is_before(&map->nodes[n], key, weight)) {
    split(map, map->nodes[n].right, key, weight, &map->nodes[n].right, above);
    *below = n;
    refresh(map, n);
  } else {
    split(map, map->nodes[n].left, key, weight, below, &map->nodes[n].left);
    *above = n;
    refresh(map, n);
  }
}

static uint32_t merge(sn_ordered *map, uint32_t below, uint32_t above) {
  if (!below || !above) return below ? below : above;
  uint32_t top = priority(below) > priority(above) ? below : above;
  if (top == below)
    map->nodes[top].right = merge(map, map->nodes[top].right, above);
  else
    map->nodes[top].left = merge(map, below, map->nodes[top].left);
  refresh(map, top);
  return top;
}

static uint32_t insert_at(sn_ordered *map, uint32_t n, uint32_t fresh) {
  uint64_t key = map->nodes[fresh].key, weight = map->nodes[fresh].weight;
  if (!n || priority(fresh) > priority(n)) {
    split(map, n, key, weight, &map->nodes[fresh].left, &map->nodes[fresh].right);
    refresh(map, fresh);
    return fresh;
  }
  if (is_before(&map->nodes[n], key, weight))
    map->nodes[n].right = insert_at(map, map->nodes[n].right, fresh);
  else
    map->nodes[n].left = insert_at(map, map->nodes[n].left, fresh);
  refresh(map, n);
  return n;
}

uint32_t sn_ordered_insert(sn_ordered *map, uint64_t key, uint64_t weight) {
  uint32_t fresh = take_node(map);
  if (!fresh) return SN_ORDERED_NONE;
  map->nodes[fresh] = (sn_ordered_node){.key = key, .weight = weight, .most = weight};
  map->root = insert_at(map, map->root, fresh);
  return fresh;
}

static uint32_t remove_at(sn_ordered *map, uint32_t n, uint64_t key, uint64_t weight) {
  if (map->nodes[n].key == key && map->nodes[n].weight == weight) {
    uint32_t rest = merge(map, map->nodes[n].left, map->nodes[n].right);
    map->nodes[n].left = map->free;
    map->free = n;
    return rest;
  }
  if (is_before(&map->nodes[n], key, weight))
    map->nodes[n].right = remove_at(map, map->nodes[n].right, key, weight);
  else
    map->nodes[n].left = remove_at(map, map->nodes[n].left, key, weight);
  refresh(map, n);
  return n;
}

void sn_ordered_remove_pair(sn_ordered *map, uint64_t key, uint64_t weight) {
  map->root = remove_at(map, map->root, key, weight);
}

void sn_ordered_remove(sn_ordered *map, uint64_t key) {
  sn_ordered_remove_pair(map, key, map->nodes[sn_ordered_floor(map, key)].weight);
}

static void move_at(sn_ordered *map, uint32_t n, uint64_t key, uint64_t to, uint64_t weight) {
  sn_ordered_node *node = &map->nodes[n];
  if (node->key == key) {
    node->key = to;
    node->weight = weight;
  } else {
    move_at(map, key < node->key ? node->left : node->right, key, to, weight);
  }
  refresh(map, n);
}

void sn_ordered_move(sn_ordered *map, uint64_t key, uint64_t to, uint64_t weight) {
  move_at(map, map->root, key, to, weight);
}

void sn_ordered_weigh(sn_ordered *map, uint64_t key, uint64_t weight) {
  move_at(map, map->root, key, key, weight);
}

uint32_t sn_ordered_floor(const sn_ordered *map, uint64_t key) {
  uint32_t best = SN_ORDERED_NONE;
  for (uint32_t n = map->root; n;) {
    if (map->nodes[n].key > key) {
      n = map->nodes[n].left;
    } else {
      best = n;
      n = map->nodes[n].right;
    }
  }
  return best;
}

uint32_t sn_ordered_ceiling_pair(const sn_ordered *map, uint64_t key, uint64_t weight) {
  uint32_t best = SN_ORDERED_NONE;
  for (uint32_t n = map->root; n;) {
    if (is_before(&map->nodes[n], key, weight)) {
      n = map->nodes[n].right;
    } else {
      best = n;
      n = map->nodes[n].left;
    }
  }
  return best;
}

uint32_t sn_ordered_ceiling(const sn_ordered *map, uint64_t key) {
  return sn_ordered_ceiling_pair(map, key, 0);
}

uint32_t sn_ordered_first(const sn_ordered *map, uint64_t weight) {
  uint32_t n = map->root;
  if (!n || map->nodes[n].most < weight) return SN_ORDERED_NONE;
  for (;;) {
    const sn_ordered_node *node = &map->nodes[n];
    if (node->left && map->nodes[node->left].most >= weight)
      n = node->left;
    else if (node->weight >= weight)
      return n;
    else
      n = node->right;
  }
}

uint64_t sn_ordered_most_below(const sn_ordered *map, uint64_t key) {
  uint64_t most = 0;
  for (uint32_t n = map->root; n;) {
    const sn_ordered_node *node = &map->nodes[n];
    if (node->key >= key) {
      n = node->left;
      continue;
    }
    if (node->weight > most) most = node->weight;
    if (node->left && map->nodes[node->left].most > most) most = map->nodes[node->left].most;
    n = node->right;
  }
  return most;
}
