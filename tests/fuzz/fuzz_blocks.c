/* Fuzz target: blocks to pack, as CSV. Whatever the bytes, there are blocks or an error that says where; blocks keep
 * the promises of sim/ask/blocks.h, and a few of them are packed. */
#include "tests/fuzz/fuzz.h"

#include "sim/ask/blocks.h"
#include "sim/memory/pack_exact.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 64 };

/* Not assert(): the fuzzer must see it in every build. */
static void require(int truth) {
  if (!truth) abort();
}

static void pack_few(const sn_block_list *list) {
  uint64_t offsets[FEW];
  uint32_t n = list->count < FEW ? list->count : FEW;
  sn_packing packing;
  sn_err err = SN_ERR_INIT;
  require(sn_pack(list->blocks, n, &(sn_pack_limits){.moves = 5}, offsets, &packing, &err) == SN_OK);
  require(packing.bytes >= packing.lower_bound);
  uint64_t before = packing.bytes;
  sn_exact exact;
  sn_exact_limits limits = {.nodes = 200};
  require(sn_pack_exact(list->blocks, n, &limits, offsets, &packing, &exact, &err) == SN_OK);
  require(packing.bytes <= before && exact.floor <= packing.bytes && exact.floor >= packing.lower_bound);
  for (uint32_t b = 0; b < n; b++) require(offsets[b] <= UINT64_MAX - list->blocks[b].bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sn_err err = SN_ERR_INIT;
  sn_block_list *list = sn_blocks_parse("fuzz.csv", (const char *)data, size, &err);
  require((list != NULL) == (err.code == SN_OK));
  require(list || strncmp(err.text, "fuzz.csv:", 9) == 0);
  for (uint32_t b = 0; list && b < list->count; b++)
    require(list->blocks[b].lower <= list->blocks[b].upper && strpbrk(list->ids[b], ",\"\n") == NULL);
  if (list) pack_few(list);
  sn_blocks_free(list);
  return 0;
}
