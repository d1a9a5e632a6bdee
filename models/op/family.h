/* What the families of operators (models/op/op.h) share; internal to models/op/. */
#ifndef SN_MODELS_OP_FAMILY_H
#define SN_MODELS_OP_FAMILY_H

#include "models/op/op.h"

/* The definition of each operator: sn__op_CONV. */
#define SN__DECLARE(name) extern const sn_op_def sn__op_##name;
SN_OPS(SN__DECLARE)
#undef SN__DECLARE

sn_status sn__check_range(const char *what, uint32_t value, uint32_t low, sn_err *err);
/* False where the product passes `limit`. */
bool sn__product_within(const uint64_t *factors, size_t count, uint64_t limit, uint64_t *product);
sn_status sn__fail_too_large(const char *what, sn_err *err);

/* Parameters and multiply-adds of a layer whose weights, so many along each axis, each of `positions` uses once. */
sn_status sn__set_weights(sn_layer *layer, const uint64_t *weights, size_t count, uint64_t positions, sn_err *err);

/* Bytes of the output, which sn_op_measure() has checked. */
uint64_t sn__out_bytes(const sn_layer *layer);

/* An operator that reads its input once and writes its output once, and backward the same with gradients. */
sn_traffic sn__traffic_once(const sn_layer *layer, double x, double y, double weight);
/* The same, and its backward step reads both again. */
sn_traffic sn__traffic_twice(const sn_layer *layer, double x, double y, double weight);
/* Of a norm or a scale whose parameters' gradient reads x and dy again. */
sn_traffic sn__traffic_of_norm(const sn_layer *layer, double x, double y, double weight);
/* A parameter a channel: sn_op_def.measure of SCALE and TOKEN. */
sn_status sn__measure_channels(sn_layer *layer, sn_shape input, sn_err *err);

#endif
