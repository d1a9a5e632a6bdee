/* Treap; see the header. A tree is about 2 log2(n) deep: PATH is enough for 2^32 nodes. Only splitting and merging,
 * which on average meet two nodes, recurse. */
#include "base/ordered.h"

#include <stdlib.h>
#include <string.h>

enum { PATH = 192 };

static uint32_t priority(uint32_t node) {
  uint32_t x = node * 2654435761u;
  x ^= x >> 16;
  return x * 2246822519u;
}

/* No node is the first of the array, whose weight is 0: so there is nothing to ask. */
static void refresh(sn_ordered *map, uint32_t n) {
  sn_ordered_node *node = &map->nodes[n];
  uint64_t left = map->nodes[node->left].most, right = map->nodes[node->right].most,
           below = left > right ? left : right;
  node->most = below > node->weight ? below : node->weight;
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
    if (map->used == 0) nodes[SN_ORDERED_NONE] = (sn_ordered_node){0};
    map->nodes = nodes;
    map->room = room;
  }
  return ++map->used;
}

void sn_ordered_clear(sn_ordered *map) {
  free(map->nodes);
  memset(map, 0, sizeof *map);
}

bool sn_ordered_copy(sn_ordered *copy, const sn_ordered *map) {
  size_t nodes = (size_t)map->used + 1; /* the first is none */
  *copy = *map;
  copy->room = map->nodes ? map->used + 1 : 0;
  copy->nodes = map->nodes ? malloc(nodes * sizeof *copy->nodes) : NULL;
  if (copy->nodes) memcpy(copy->nodes, map->nodes, nodes * sizeof *copy->nodes);
  if (copy->nodes || !map->nodes) return true;
  *copy = (sn_ordered){0};
  return false;
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

/* On the way down every node learns of the weight. */
static void insert_node(sn_ordered *map, uint32_t fresh) {
  const uint32_t first = priority(fresh);
  const uint64_t key = map->nodes[fresh].key, weight = map->nodes[fresh].weight;
  uint32_t *link = &map->root;
  while (*link && priority(*link) >= first) {
    sn_ordered_node *node = &map->nodes[*link];
    if (node->most < weight) node->most = weight;
    link = is_before(node, key, weight) ? &node->right : &node->left;
  }
  split(map, *link, key, weight, &map->nodes[fresh].left, &map->nodes[fresh].right);
  refresh(map, fresh);
  *link = fresh;
}

uint32_t sn_ordered_insert(sn_ordered *map, uint64_t key, uint64_t weight) {
  uint32_t fresh = take_node(map);
  if (!fresh) return SN_ORDERED_NONE;
  map->nodes[fresh] = (sn_ordered_node){.key = key, .weight = weight, .most = weight};
  insert_node(map, fresh);
  return fresh;
}

/* The nodes from the root down to before the one that a link was followed to. */
typedef struct path {
  uint32_t nodes[PATH];
  uint32_t n;
} path;

/* Up again, as far as something changes. */
static void refresh_path(sn_ordered *map, path *p) {
  while (p->n > 0) {
    uint32_t n = p->nodes[--p->n];
    uint64_t most = map->nodes[n].most;
    refresh(map, n);
    if (map->nodes[n].most == most) break;
  }
}

/* The node that a link on the path leads to. */
static void cut_out(sn_ordered *map, path *p, uint32_t *link) {
  uint32_t n = *link;
  *link = merge(map, map->nodes[n].left, map->nodes[n].right);
  map->nodes[n].left = map->free;
  map->free = n;
  refresh_path(map, p);
}

void sn_ordered_remove_pair(sn_ordered *map, uint64_t key, uint64_t weight) {
  path p;
  p.n = 0;
  uint32_t *link = &map->root, n = *link;
  for (; map->nodes[n].key != key || map->nodes[n].weight != weight; n = *link) {
    p.nodes[p.n++] = n;
    link = is_before(&map->nodes[n], key, weight) ? &map->nodes[n].right : &map->nodes[n].left;
  }
  cut_out(map, &p, link);
}

void sn_ordered_remove(sn_ordered *map, uint64_t key) {
  path p;
  p.n = 0;
  uint32_t *link = &map->root, n = *link;
  for (; map->nodes[n].key != key; n = *link) {
    p.nodes[p.n++] = n;
    link = key < map->nodes[n].key ? &map->nodes[n].left : &map->nodes[n].right;
  }
  cut_out(map, &p, link);
}

void sn_ordered_move(sn_ordered *map, uint64_t key, uint64_t to, uint64_t weight) {
  path p;
  p.n = 0;
  uint32_t n = map->root;
  for (; map->nodes[n].key != key; n = key < map->nodes[n].key ? map->nodes[n].left : map->nodes[n].right)
    p.nodes[p.n++] = n;
  p.nodes[p.n++] = n;
  map->nodes[n].key = to;
  map->nodes[n].weight = weight;
  refresh_path(map, &p);
}

void sn_ordered_weigh(sn_ordered *map, uint64_t key, uint64_t weight) {
  sn_ordered_move(map, key, key, weight);
}

void sn_ordered_around(const sn_ordered *map, uint64_t key, uint32_t *below, uint32_t *above) {
  *below = *above = SN_ORDERED_NONE;
  for (uint32_t n = map->root; n;) {
    bool is_above = map->nodes[n].key > key;
    *(is_above ? above : below) = n;
    n = is_above ? map->nodes[n].left : map->nodes[n].right;
  }
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
