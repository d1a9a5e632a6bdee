/* The caching allocator against a plain one: the rules once more, as scans over one list of all blocks in the order of
 * their addresses. Random requests, options and limits; every block must have the same address and size in both, every
 * failure and figure must be the same.
 *
 *   SN_SEED        the first seed
 *   SN_PROP_NETS   how many allocators (default: 2000)
 */
#include "sim/memory/caching.h"
#include "tests/support/prng.h"
#include "tests/support/seed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 4096, MOST_LIVE = 300, REQUESTS = 600, NONE = MOST_PARTS };

#define MIB (UINT64_C(1) << 20)

/* ---- the plain allocator ---- */

/* Whose a block is: what it shares with no block of another. */
typedef struct home {
  uint8_t stream;
  bool small;
} home;

typedef struct part {
  uint64_t begin, end;
  uint32_t segment; /* from 1 on */
  home of;
  char what; /* 't'aken, 'f'ree, 'u'nmapped */
} part;

typedef struct plain {
  part parts[MOST_PARTS]; /* by address */
  uint32_t n, segments_made;
  uint64_t limit, split, beside;
  bool pages;
  sn_caching_figures figures;
} plain;

static uint64_t size_of(const part *p) {
  return p->end - p->begin;
}

static void count(plain *m) {
  sn_caching_figures *f = &m->figures;
  f->allocated_bytes = f->reserved_bytes = f->segments = 0;
  for (uint32_t i = 0; i < m->n; i++) {
    const part *p = &m->parts[i];
    f->segments += i == 0 || p[-1].segment != p->segment;
    if (p->what == 't') f->allocated_bytes += size_of(p);
    if (p->what != 'u') f->reserved_bytes += size_of(p);
  }
  if (f->allocated_bytes > f->allocated_peak) f->allocated_peak = f->allocated_bytes;
  if (f->reserved_bytes > f->reserved_peak) f->reserved_peak = f->reserved_bytes;
}

static void insert(plain *m, uint32_t at, part p) {
  assert_true(m->n < MOST_PARTS);
  memmove(m->parts + at + 1, m->parts + at, (m->n - at) * sizeof p);
  m->parts[at] = p;
  m->n++;
}

static void erase(plain *m, uint32_t at) {
  m->n--;
  memmove(m->parts + at, m->parts + at + 1, (m->n - at) * sizeof *m->parts);
}

/* Neighbours in one segment that are both free, or both unmapped, are one. */
static void tidy(plain *m) {
  for (uint32_t i = 1; i < m->n;) {
    part *p = &m->parts[i];
    if (p->segment == p[-1].segment && p->what == p[-1].what && p->what != 't') {
      p[-1].end = p->end;
      erase(m, i);
    } else {
      i++;
    }
  }
  count(m);
}

/* Cuts a part in two at `address`, which lies inside or at an end. */
static void cut_at(plain *m, uint32_t at, uint64_t address) {
  part rest = m->parts[at];
  if (address <= rest.begin || address >= rest.end) return;
  m->parts[at].end = rest.begin = address;
  insert(m, at + 1, rest);
}

static uint32_t add_segment(plain *m, uint64_t bytes, home of, char what) {
  uint64_t begin = 0;
  uint32_t at = 0;
  while (at < m->n && m->parts[at].begin - begin < bytes) begin = m->parts[at++].end;
  insert(m, at, (part){begin, begin + bytes, ++m->segments_made, of, what});
  count(m);
  return at;
}

static uint64_t up(uint64_t bytes, uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

static uint64_t page_of(home of) {
  return (of.small ? 2 : 20) * MIB;
}

static bool are_same(home a, home b) {
  return a.stream == b.stream && a.small == b.small;
}

static uint64_t can_become(const plain *m, uint32_t i) {
  bool more = i + 1 < m->n && m->parts[i + 1].segment == m->parts[i].segment && m->parts[i + 1].what == 'u';
  return size_of(&m->parts[i]) + (more ? size_of(&m->parts[i + 1]) : 0);
}

/* The next free part by (size, address) from there on; NONE: there is none. */
static uint32_t next_free(const plain *m, home of, uint64_t bytes, uint64_t address) {
  uint32_t best = NONE;
  for (uint32_t i = 0; i < m->n; i++) {
    const part *p = &m->parts[i];
    if (p->what != 'f' || !are_same(p->of, of)) continue;
    if (size_of(p) < bytes || (size_of(p) == bytes && p->begin < address)) continue;
    if (best == NONE || size_of(p) < size_of(&m->parts[best])) best = i;
  }
  return best;
}

static uint32_t cached(const plain *m, uint64_t bytes, home of) {
  uint32_t i = next_free(m, of, bytes, 0);
  while (m->pages && i != NONE) {
    uint32_t next = next_free(m, of, size_of(&m->parts[i]), m->parts[i].begin + 1);
    if (next == NONE || can_become(m, next) >= can_become(m, i)) break;
    i = next;
  }
  if (i == NONE || !m->split) return i;
  uint64_t size = size_of(&m->parts[i]);
  if (bytes < m->split && size >= m->split) return NONE;
  return bytes >= m->split && size >= bytes + 20 * MIB ? NONE : i;
}

/* The first part from which on `bytes` are free or unmapped, and that is unmapped or has an unmapped one behind it. */
static uint32_t find_run(const plain *m, uint64_t bytes, home of) {
  for (uint32_t i = 0; i < m->n; i++) {
    const part *p = &m->parts[i];
    uint64_t sum = 0;
    if (!are_same(p->of, of) || p->what == 't') continue;
    if (p->what == 'f' && can_become(m, i) == size_of(p)) continue;
    for (uint32_t k = i; k < m->n && m->parts[k].segment == p->segment && m->parts[k].what != 't'; k++)
      sum += size_of(&m->parts[k]);
    if (sum >= bytes) return i;
  }
  return NONE;
}

static uint32_t from_pages(plain *m, uint64_t bytes, home of) {
  uint32_t i = find_run(m, bytes, of);
  if (i == NONE) {
    uint64_t memory = m->limit + m->beside, span = memory + memory / 8;
    i = add_segment(m, up(span > bytes ? span : bytes, 20 * MIB), of, 'u');
  }
  uint64_t begin = m->parts[i].begin, end = begin;
  uint32_t segment = m->parts[i].segment;
  while (end - begin < bytes) {
    uint32_t k = 0;
    while (m->parts[k].segment != segment || m->parts[k].begin != end) k++;
    if (m->parts[k].what == 'u') {
      uint64_t want = begin + bytes - end, most = size_of(&m->parts[k]);
      want = up(want < most ? want : most, page_of(of));
      if (m->figures.reserved_bytes + want > m->limit) return tidy(m), NONE;
      cut_at(m, k, m->parts[k].begin + want);
      m->parts[k].what = 'f';
      count(m);
    }
    end = m->parts[k].end;
  }
  tidy(m);
  for (i = 0; m->parts[i].segment != segment || m->parts[i].end <= begin;) i++;
  return i;
}

static uint32_t from_driver(plain *m, uint64_t bytes, home of) {
  if (m->pages) return from_pages(m, bytes, of);
  uint64_t segment = of.small ? 2 * MIB : bytes < 10 * MIB ? 20 * MIB : up(bytes, 2 * MIB);
  if (m->figures.reserved_bytes + segment > m->limit) return NONE;
  return add_segment(m, segment, of, 'f');
}

static bool is_segment(const plain *m, uint32_t i) {
  uint32_t s = m->parts[i].segment;
  return (i == 0 || m->parts[i - 1].segment != s) && (i + 1 == m->n || m->parts[i + 1].segment != s);
}

/* The pages of one free part; false where there is none left. A segment of which nothing is mapped any more is gone;
 * one of which nothing ever was, as the driver had no page, stays. */
static bool unmap_one(plain *m) {
  for (uint32_t i = 0; i < m->n; i++) {
    uint64_t page = page_of(m->parts[i].of), first = up(m->parts[i].begin, page), last = m->parts[i].end / page * page;
    if (m->parts[i].what != 'f' || first >= last) continue;
    cut_at(m, i, last);
    cut_at(m, i, first);
    while (m->parts[i].begin < first) i++;
    m->parts[i].what = 'u';
    tidy(m);
    for (i = 0; m->parts[i].end <= first;) i++;
    if (is_segment(m, i)) erase(m, i);
    count(m);
    return true;
  }
  return false;
}

static void give_all(plain *m) {
  m->figures.retries++;
  while (m->pages && unmap_one(m)) {}
  for (uint32_t i = 0; i < m->n && !m->pages;)
    if (m->parts[i].what == 'f' && is_segment(m, i))
      erase(m, i);
    else
      i++;
  count(m);
}

/* Whether enough went back to ask the driver again. */
static bool give_uncut(plain *m, uint64_t bytes, home of) {
  if (!m->split || m->pages) return false;
  if (bytes < m->split) bytes = m->split;
  uint32_t enough = next_free(m, of, bytes, 0);
  if (enough != NONE) return erase(m, enough), count(m), true;
  for (uint64_t sum = 0; sum < bytes;) {
    uint32_t best = NONE;
    for (uint32_t i = 0; i < m->n; i++)
      if (m->parts[i].what == 'f' && are_same(m->parts[i].of, of) && size_of(&m->parts[i]) >= m->split &&
          (best == NONE || size_of(&m->parts[i]) >= size_of(&m->parts[best])))
        best = i;
    if (best == NONE) return false;
    sum += size_of(&m->parts[best]);
    erase(m, best);
    count(m);
  }
  return true;
}

/* The address; false where nothing fits. */
static bool plain_take(plain *m, uint64_t bytes, uint8_t stream, uint64_t *address, uint64_t *size) {
  bytes = up(bytes, 512);
  home of = {stream, bytes <= MIB};
  uint32_t i = cached(m, bytes, of);
  if (i == NONE) i = from_driver(m, bytes, of);
  if (i == NONE && give_uncut(m, bytes, of)) i = from_driver(m, bytes, of);
  if (i == NONE) give_all(m), i = from_driver(m, bytes, of);
  if (i == NONE) return false;
  uint64_t rest = size_of(&m->parts[i]) - bytes;
  bool cuts = of.small || m->pages ? rest >= 512 : rest > MIB && (!m->split || bytes < m->split);
  if (cuts) cut_at(m, i, m->parts[i].begin + bytes);
  m->parts[i].what = 't';
  count(m);
  *address = m->parts[i].begin;
  *size = size_of(&m->parts[i]);
  return true;
}

static void plain_give(plain *m, uint64_t address) {
  uint32_t i = 0;
  while (m->parts[i].begin != address) i++;
  m->parts[i].what = 'f';
  tidy(m);
}

/* ---- both side by side ---- */

typedef struct pair {
  plain model;
  sn_caching *caching;
  uint32_t live[MOST_LIVE];
  uint32_t n_live;
  uint64_t seed, failures;
  uint64_t kept_bytes; /* of blocks taken for good */
  uint32_t keeps;      /* so many of a hundred are */
  uint32_t streams;    /* that are in use */
} pair;

static void compare(const pair *p) {
  const sn_caching_figures *a = sn_caching_look(p->caching), *b = &p->model.figures;
  if (a->allocated_bytes != b->allocated_bytes || a->allocated_peak != b->allocated_peak ||
      a->reserved_bytes != b->reserved_bytes || a->reserved_peak != b->reserved_peak || a->segments != b->segments ||
      a->retries != b->retries)
    fail_msg("SN_SEED=%" PRIu64 ": %" PRIu64 " of %" PRIu64 " B, %u segments, %" PRIu64 " retries; must be %" PRIu64
             " of %" PRIu64 ", %u, %" PRIu64,
             p->seed, a->allocated_bytes, a->reserved_bytes, a->segments, a->retries, b->allocated_bytes,
             b->reserved_bytes, b->segments, b->retries);
  assert_true(a->allocated_bytes <= a->reserved_bytes && a->reserved_bytes <= p->model.limit);
}

/* No two blocks in use overlap, and together they are what is allocated. */
static void check_blocks(const pair *p) {
  uint64_t sum = p->kept_bytes;
  for (uint32_t i = 0; i < p->n_live; i++) {
    uint64_t begin = sn_caching_extent(p->caching, p->live[i]).offset,
             bytes = sn_caching_extent(p->caching, p->live[i]).bytes;
    sum += bytes;
    for (uint32_t k = 0; k < i; k++) {
      uint64_t other = sn_caching_extent(p->caching, p->live[k]).offset;
      assert_true(begin + bytes <= other || other + sn_caching_extent(p->caching, p->live[k]).bytes <= begin);
    }
  }
  assert_true(sum == sn_caching_look(p->caching)->allocated_bytes);
}

static uint64_t draw_bytes(uint64_t *dice) {
  static const uint64_t edges[] = {512, MIB, 2 * MIB, 10 * MIB, 20 * MIB, 21 * MIB, 40 * MIB};
  uint32_t kind = prng_below(dice, 100);
  uint64_t edge = edges[prng_below(dice, sizeof edges / sizeof *edges)];
  if (kind < 25) return edge - 1 + prng_below(dice, 3);
  if (kind < 35) return edge + 512 * (uint64_t)prng_below(dice, 4000);
  if (kind < 60) return 1 + prng_below(dice, 1 << 20);
  if (kind < 80) return 1 + prng_below(dice, 10 << 20);
  if (kind < 95) return 1 + prng_below(dice, 60 << 20);
  return 1 + (uint64_t)prng_below(dice, 300) * MIB;
}

static void check_fits(pair *p, uint64_t bytes, bool fits, sn_status status, const sn_err *err) {
  if (status != (fits ? SN_OK : SN_NO_FIT))
    fail_msg("SN_SEED=%" PRIu64 ": %" PRIu64 " B: %s %s", p->seed, bytes, sn_status_name(status), err->text);
  p->failures += !fits;
}

typedef struct asked {
  uint64_t bytes;
  uint8_t stream;
} asked;

static void take_both(pair *p, asked a) {
  sn_err err = SN_ERR_INIT;
  uint64_t address = 0, size = 0;
  uint32_t block;
  bool fits = plain_take(&p->model, a.bytes, a.stream, &address, &size);
  const sn_caching_size asks = sn_caching_size_on(a.bytes, a.stream);
  sn_status status = sn_caching_take_size(p->caching, &asks, &block, &err);
  check_fits(p, a.bytes, fits, status, &err);
  if (!fits) return;
  if (sn_caching_extent(p->caching, block).offset != address || sn_caching_extent(p->caching, block).bytes != size)
    fail_msg("SN_SEED=%" PRIu64 ": %" PRIu64 " B at %" PRIu64 " (%" PRIu64 "), must be %" PRIu64 " (%" PRIu64 ")",
             p->seed, a.bytes, sn_caching_extent(p->caching, block).offset, sn_caching_extent(p->caching, block).bytes,
             address, size);
  p->live[p->n_live++] = block;
}

static void give_both(pair *p, uint32_t which) {
  uint32_t block = p->live[which];
  p->live[which] = p->live[--p->n_live];
  plain_give(&p->model, sn_caching_extent(p->caching, block).offset);
  sn_caching_give(p->caching, block);
}

/* Taken and given back at once. */
static void pass_both(pair *p, asked a) {
  sn_err err = SN_ERR_INIT;
  uint64_t address = 0, size = 0;
  bool fits = plain_take(&p->model, a.bytes, a.stream, &address, &size);
  const sn_caching_size asks = sn_caching_size_on(a.bytes, a.stream);
  sn_status status = sn_caching_pass_size(p->caching, &asks, &err);
  check_fits(p, a.bytes, fits, status, &err);
  if (fits) plain_give(&p->model, address);
}

/* Taken for good. */
static void keep_both(pair *p, asked a) {
  sn_err err = SN_ERR_INIT;
  uint64_t address = 0, size = 0;
  bool fits = plain_take(&p->model, a.bytes, a.stream, &address, &size);
  const sn_caching_size asks = sn_caching_size_on(a.bytes, a.stream);
  sn_status status = sn_caching_keep_size(p->caching, &asks, &err);
  check_fits(p, a.bytes, fits, status, &err);
  if (fits) p->kept_bytes += size;
}

/* What has happened so far is right for the limit that it has happened under, and a copy goes on as what it was made of
 * would. */
static void go_on_with_copy(pair *p) {
  sn_err err = SN_ERR_INIT;
  sn_caching_range range = sn_caching_limits(p->caching);
  assert_true(range.from <= p->model.limit && p->model.limit < range.below);
  sn_caching *copy = sn_caching_copy(p->caching, &err);
  assert_non_null(copy);
  sn_caching_free(p->caching);
  p->caching = copy;
}

/* Once all is given back, and nothing was taken for good, the driver can have everything: a request for all there is
 * fits. */
static void give_everything(pair *p) {
  while (p->n_live) give_both(p, p->n_live - 1);
  compare(p);
  assert_true(sn_caching_look(p->caching)->allocated_bytes == p->kept_bytes);
  if (p->kept_bytes > 0) return;
  if (!p->model.pages) assert_true(sn_caching_largest_split(p->caching) == 0);
  take_both(p, (asked){p->model.limit / (20 * MIB) * (20 * MIB), 0});
  assert_int_equal(p->n_live, 1);
  compare(p);
}

static void run(pair *p, uint64_t *dice) {
  uint32_t fullness = prng_from(dice, 35, 65);
  for (uint32_t i = 0; i < REQUESTS; i++) {
    if (i % 150 == 0) fullness = prng_from(dice, 35, 65);
    asked a = {draw_bytes(dice), p->streams > 1 ? (uint8_t)prng_below(dice, p->streams) : 0};
    bool takes = p->n_live == 0 || (p->n_live < MOST_LIVE && prng_chance(dice, fullness));
    if (takes && prng_chance(dice, 20))
      pass_both(p, a);
    else if (takes && prng_chance(dice, p->keeps))
      keep_both(p, a);
    else if (takes)
      take_both(p, a);
    else
      give_both(p, prng_below(dice, p->n_live));
    compare(p);
    if (i % 50 == 0) check_blocks(p);
    if (prng_chance(dice, 1)) go_on_with_copy(p);
  }
  give_everything(p);
}

static void like_the_plain_one(void **state) {
  (void)state;
  uint32_t rounds = case_count(2000);
  uint64_t seed = first_seed(1), failures = 0, retries = 0, most = 0;
  for (uint32_t n = 0; n < rounds; n++, seed++) {
    uint64_t dice = seed;
    static pair p;
    sn_err err = SN_ERR_INIT;
    p = (pair){.seed = seed};
    p.model.limit = prng_chance(&dice, 50) ? 20 * MIB + 512 * (uint64_t)prng_below(&dice, 4000000)
                                           : (20 + prng_below(&dice, 400)) * MIB;
    p.model.pages = prng_chance(&dice, 40);
    p.streams = prng_from(&dice, 1, SN_CACHING_STREAMS);
    p.keeps = prng_chance(&dice, 50) ? 3 : 0;
    if (prng_chance(&dice, 30)) p.model.split = (21 + prng_below(&dice, 40)) * MIB;
    if (prng_chance(&dice, 50)) p.model.beside = 512 * (uint64_t)prng_below(&dice, 4000000);
    const sn_caching_options options = {p.model.pages, p.model.split, p.model.beside, p.streams};
    p.caching = sn_caching_new(p.model.limit, &options, &err);
    assert_non_null(p.caching);
    run(&p, &dice);
    failures += p.failures;
    retries += p.model.figures.retries;
    if (p.model.n > most) most = p.model.n;
    sn_caching_free(p.caching);
  }
  print_message("%d allocators: %" PRIu64 " requests did not fit, %" PRIu64 " times all free segments went back\n",
                rounds, failures, retries);
  assert_true(failures > 0 && retries > failures);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(like_the_plain_one)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
