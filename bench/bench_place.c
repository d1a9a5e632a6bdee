/* Benchmark of packing: how close, how fast.
 *
 *   build/bench/bench_place [FILE.csv ...]
 *
 * Without files the blocks are made up: stacks of outputs that wait for their backward step with workspaces between,
 * and blocks thrown at random with short and long lives, from 2,000 to 200,000. Times are of this process's own CPU. */
#include "sim/ask/blocks.h"
#include "sim/plan/pack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t dice = 1;

static uint64_t below(uint64_t n) { /* xorshift64* */
  dice ^= dice >> 12;
  dice ^= dice << 25;
  dice ^= dice >> 27;
  return (dice * UINT64_C(2685821657736338717) >> 11) % n;
}

/* Outputs nested in one another, a gradient beside each, a workspace here and there. */
static void make_stack(sn_block *blocks, uint32_t n) {
  uint32_t layers = n / 3;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t layer = i % layers;
    uint64_t at = below(2 * layers);
    if (i < layers)
      blocks[i] = (sn_block){layer, 2 * layers - layer, 1024 * (1 + below(200))};
    else if (i < 2 * layers)
      blocks[i] = (sn_block){2 * layers - layer - 1, 2 * layers - layer + 1, 1024 * (1 + below(200))};
    else
      blocks[i] = (sn_block){at, at + 1, 1024 * (1 + below(5000))};
  }
}

static void make_random(sn_block *blocks, uint32_t n, uint64_t life) {
  for (uint32_t i = 0; i < n; i++) {
    uint64_t at = below(10 * (uint64_t)n);
    blocks[i] = (sn_block){at, at + 1 + below(10 * life), 1024 * (1 + below(1000))};
  }
}

static sn_status measure(const char *name, const sn_block *blocks, uint32_t n, sn_err *err) {
  uint64_t *offsets = calloc((size_t)n + 1, sizeof *offsets);
  sn_packing p;
  struct timespec from, to;
  if (!offsets) return sn_fail_memory(err);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
  sn_pack(blocks, n, &(sn_pack_limits)SN_PACK_LIMITS_INIT, offsets, &p, err);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
  free(offsets);
  if (err->code != SN_OK) return err->code;
  double ms = (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6;
  printf("%-40s %8" PRIu32 " %14" PRIu64 " %8.4f %6" PRIu32 " %9.1f\n", name, n, p.bytes,
         p.lower_bound ? (double)p.bytes / (double)p.lower_bound : 1, p.moves, ms);
  return SN_OK;
}

static sn_status measure_files(int count, char **paths, sn_err *err) {
  for (int i = 0; i < count && err->code == SN_OK; i++) {
    sn_block_list *list = sn_blocks_load(paths[i], err);
    if (list) measure(paths[i], list->blocks, list->count, err);
    sn_blocks_free(list);
  }
  return err->code;
}

static sn_status measure_made(sn_err *err) {
  static const uint32_t sizes[] = {2000, 30000, 200000};
  sn_block *blocks = calloc(sizes[2], sizeof *blocks);
  if (!blocks) return sn_fail_memory(err);
  for (int i = 0; i < 3 && err->code == SN_OK; i++) {
    uint32_t n = sizes[i];
    make_stack(blocks, n);
    measure("stack", blocks, n, err);
    make_random(blocks, n, 50);
    if (err->code == SN_OK) measure("random, short lives", blocks, n, err);
    make_random(blocks, n, n);
    if (err->code == SN_OK) measure("random, long lives", blocks, n, err);
  }
  free(blocks);
  return err->code;
}

int main(int argc, char **argv) {
  sn_err err = SN_ERR_INIT;
  printf("%-40s %8s %14s %8s %6s %9s\n", "blocks", "count", "bytes", "/ bound", "moves", "CPU ms");
  if (argc > 1)
    measure_files(argc - 1, argv + 1, &err);
  else
    measure_made(&err);
  if (err.code == SN_OK) return 0;
  fprintf(stderr, "bench_place: %s\n", err.text);
  return 1;
}
