/* Pack within a capacity by a beam of ways along their skylines; what pack_exact.h searches with beside its tree, which
 * loses itself below a choice that was wrong.
 *
 *   sn__skyline *sky = sn__skyline_new(lives, n, n_sections);
 *   while (!sn__skyline_try(sky, capacity, may_look, context, offsets) && ..) ;
 *   sn__skyline_free(sky);
 *
 * In each section of time the skyline is the lowest offset that a block to come can have there. Of a way, a section is
 * taken where the skyline lies low; one of the blocks that can lie there does, or none, and what could have is raised
 * to the next end that can come. Blocks to come from the skyline up are the least that a section takes: past the
 * capacity, the way ends. The best ways go on, by
 *
 *   what sections have left    each counts the more the less it has: (c / (left + c)) or its fourth root
 *   where tries have failed    sections in which the last ways of a try ended count more in those that follow
 *
 * Nobody knows c, the width, or which of the low sections comes first (the lowest, or of those with none lower beside
 * them the one with the least left), so that every try draws them; most tries are narrow. From a fixed
 * seed: same blocks, same tries, same offsets. */
#ifndef SN_SIM_MEMORY_PACK_SKYLINE_H
#define SN_SIM_MEMORY_PACK_SKYLINE_H

#include <stdbool.h>
#include <stdint.h>

/* Blocks that a skyline takes; their ways take 4 MiB then. */
enum { SN__SKYLINE_MOST = 1024 };

/* A block that lives from section `lower` to before `upper`; bytes in a unit that divides all of them. */
typedef struct sn__life {
  uint64_t bytes;
  uint32_t lower, upper;
} sn__life;

typedef struct sn__skyline sn__skyline;

/* `lives` by their begins, at most SN__SKYLINE_MOST, and kept by the caller as long; every section has one. NULL: there
 * is no memory. */
sn__skyline *sn__skyline_new(const sn__life *lives, uint32_t count, uint32_t n_sections);
void sn__skyline_free(sn__skyline *sky);

/* One more try; true: `offsets`, one a block, are within the capacity, which no section's load passes; in that unit.
 * `may_look` is asked before each way goes on; false ends the try. */
bool sn__skyline_try(sn__skyline *sky, uint64_t capacity, bool (*may_look)(void *context), void *context,
                     uint64_t *offsets);

#endif
