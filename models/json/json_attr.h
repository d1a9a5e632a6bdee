/* Operators and attributes of a layer in a JSON network; internal to models/json/. */
#ifndef SN_MODELS_JSON_JSON_ATTR_H
#define SN_MODELS_JSON_JSON_ATTR_H

#include "models/json/json_list.h"
#include "models/net/net.h"

/* The operator of a layer; false: it is missing or unknown, which is on the list now. */
bool sn__json_op(sn__mistakes *m, const cJSON *layer, sn_op *op);
/* The attributes of layer `at`, which has that operator, all but "weights_of". Mistakes are on the list's list, and
 * `failed` of it is set. */
void sn__json_attributes(const sn__json_list *list, uint32_t at, sn_op op, sn_attr *attr);

#endif
