/* Neighbours: the time of a shape that nobody measured, from the measured shapes next to it.
 *
 * A roofline that adds, t = flops / rate + bytes / bandwidth + launch, with the rates that a calibration has fitted,
 * says roughly what a step takes. A library's kernels are good at some shapes and bad at others, so measured times miss
 * it by a factor; but the factor changes slowly from shape to shape. Its logarithm is interpolated between the shapes
 * that were measured, by inverse distance (Shepard, "A two-dimensional interpolation function for irregularly-spaced
 * data", 1968), over five axes, each a logarithm to base 2: channels in (of a group), channels out, positions of all
 * images, kernel area, stride. Far from all neighbours it nears that of the family as a whole.
 *
 * Neighbours are of one family: operator, pass, and what makes a library choose other kernels altogether, the mode of
 * a POOL or ACT, whether a CONV has groups, and whether a BN and a ReLU are made together. Where convolutions have
 * several algorithms, each of them is a family; what is left of such a step has none. */
#ifndef SN_SIM_DEVICE_NEIGHBOURS_H
#define SN_SIM_DEVICE_NEIGHBOURS_H

#include "base/err.h"
#include "sim/device/calibration.h"

enum { SN_SHAPE_AXES = 5, SN_SHAPE_MODE = 32 };

struct sn_neighbour {
  uint32_t op, pass;
  uint32_t kernel, algo;    /* of an algorithm; SN_CONV_KERNELS, SN_CONV_ALGOS: a whole step */
  bool counts;              /* in `residual`: a step, or of the algorithms of a shape's kernel the fastest */
  char mode[SN_SHAPE_MODE]; /* "", " average", " global max", " grouped", " tanh" */
  double place[SN_SHAPE_AXES];
  double roofline_ns;
  double ns;        /* measured */
  double log_ratio; /* of measured over roofline */
  double log_error; /* by how much its own neighbours, without itself, would miss it: predicted over measured */
};

/* Fills neighbours and `residual` from the timings; those on teams, and texts that are no shapes, are left out.
 * SN_NO_MEMORY. */
sn_status sn_neighbours_find(sn_calibration *calibration, sn_err *err);

/* A place among them, of a shape of sn_timing_shape(); false where the text is none. */
bool sn_neighbours_place(const sn_calibration *calibration, uint32_t op, uint32_t pass, const char *shape,
                         sn_neighbour *place);

/* Time in ns there, of a step (SN_CONV_KERNELS, SN_CONV_ALGOS) or an algorithm; 0 where none of its family was
 * measured. O(neighbours). */
double sn_neighbours_time(const sn_calibration *calibration, sn_neighbour place, uint32_t kernel, uint32_t algo);

#endif
