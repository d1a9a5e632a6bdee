/* Colours: which step may take over memory that another step gave back, so that steps that could run side by side are
 * not ordered by the memory they share (planning, part C).
 *
 *   one colour   anyone may
 *   K colours    only a step of the same colour. K - 1 times the path with the most steps without a colour gives them
 *                one of its own; the rest have the last. Steps on a path run one after another anyway.
 *   ancestors    only a step that runs behind the other in any case
 *
 * A path goes from a step that makes a tensor to one that reads it. O(colours x accesses); ancestors: steps^2 / 64
 * words of memory.
 */
#ifndef SN_SIM_SHARE_COLOUR_H
#define SN_SIM_SHARE_COLOUR_H

#include "base/err.h"
#include "sim/graph/pass.h"

#include <stdbool.h>
#include <stdint.h>

/* In place of a number of colours, from 1: ancestors. And the most steps for that, the most colours. */
enum { SN_COLOURS_ANCESTORS = 0, SN_COLOURS_MOST_STEPS = 20000, SN_COLOURS_MOST = 1000 };

typedef struct sn_colouring sn_colouring;

/* Of the route's first n_steps steps, which change no tensor in place. SN_BAD_USAGE where there are too many for
 * ancestors. */
sn_colouring *sn_colouring_new(const sn_route *route, uint32_t n_steps, uint32_t colours, sn_err *err);
void sn_colouring_free(sn_colouring *colouring);

/* May `taker` have what `giver` used last? The giver is the earlier of them. */
bool sn_colouring_allows(const sn_colouring *colouring, uint32_t giver, uint32_t taker);

/* A step's colour, from 0; 0 for all with ancestors. */
uint32_t sn_colouring_of(const sn_colouring *colouring, uint32_t step);

#endif
