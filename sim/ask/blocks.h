/* Blocks: a packing problem from a file, in MiniMalloc's format (docs/placement.md). A CSV whose first line names its
 * columns: id, lower, upper and size, in any order, and beside them
 *   alignment  kept where it divides every size, as all offsets are sums of sizes; refused elsewhere
 *   hint       a wish for an offset, which is not looked at, but counted
 *   offset     fixes a block's place, and
 *   gaps       are times at which a block is not there: both are refused unless their cells are empty.
 *
 *   sn_block_list *list = sn_blocks_load("A.1048576.csv", &err);
 *   sn_pack(list->blocks, list->count, &limits, offsets, &packing, &err);
 *   sn_blocks_free(list);
 *
 * Errors are SN_BAD_INPUT (SN_BAD_FILE where the file cannot be read) and begin with "file:line: ".
 */
#ifndef SN_SIM_ASK_BLOCKS_H
#define SN_SIM_ASK_BLOCKS_H

#include "base/arena.h"
#include "base/err.h"
#include "sim/memory/pack.h"

#include <stddef.h>
#include <stdint.h>

/* In the order of the file; lower <= upper, and all bytes together fit in 64 bits. */
typedef struct sn_block_list {
  sn_block *blocks;
  const char **ids; /* as they stand in the file: without commas, quotes and control characters */
  uint32_t count, room;
  uint32_t hints;  /* blocks that had one */
  sn_arena *arena; /* of the ids */
} sn_block_list;

sn_block_list *sn_blocks_load(const char *path, sn_err *err);
/* The same of text that was read already; `name` stands for the file in messages. */
sn_block_list *sn_blocks_parse(const char *name, const char *text, size_t bytes, sn_err *err);
void sn_blocks_free(sn_block_list *list);

#endif
