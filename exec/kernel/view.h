/* Views: values and gradients whose numbers lie in another's tensor, in an order of their own or among others: what
 * PyTorch's TAKE, SLICE, TRANSPOSE and RESHAPE make, and gradients that are handed on (sim/graph/route.h). A kernel has
 * no strides; what it reads of a view is gathered for it, in workspace planned for that, unless its numbers lie in
 * order anyway, as those of a RESHAPE do.
 *
 * Where several views are one behind the other a number's place is found by going from one to the next, O(views) each;
 * else whole runs of numbers that stay together are copied.
 */
#ifndef SN_EXEC_KERNEL_VIEW_H
#define SN_EXEC_KERNEL_VIEW_H

#include "sim/graph/pass.h"

#include <stdint.h>

/* Adds two gradients where they meet; each may be a view. */
void sn_call_sum(const sn_route *route, const sn_step *step, unsigned char *const *place);

/* Copies the numbers of a gradient that is a view to `to`, in the value's order; or those of a value that is. */
void sn_call_gather(const sn_route *route, uint32_t value, const float *storage, float *to);
void sn_call_gather_input(const sn_route *route, uint32_t value, const float *storage, float *to);

/* Bytes that the gradient with respect to a layer's output takes when it is gathered, and its i-th input, forward or
 * backward; 0 where it lies in order, or the step does not read it. */
uint64_t sn_call_gathered_bytes(const sn_route *route, const sn_step *step);
uint64_t sn_call_gathered_input_bytes(const sn_route *route, const sn_step *step, uint32_t i);

#endif
