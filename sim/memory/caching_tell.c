/* Caching: the calls that say in words what does not fit. */
#include "base/units.h"
#include "sim/memory/caching.h"

static sn_status tell(const sn_caching *c, uint64_t bytes, sn_status status, sn_err *err) {
  char asked[SN_UNIT_TEXT], limit[SN_UNIT_TEXT], reserved[SN_UNIT_TEXT], allocated[SN_UNIT_TEXT], split[SN_UNIT_TEXT];
  const sn_caching_figures *figures = sn_caching_look(c);
  if (status != SN_NO_FIT) return status;
  return sn_fail(err, SN_NO_FIT, "%s are asked for; of %s there are %s reserved, %s allocated, largest free block %s",
                 sn_print_bytes(bytes, asked), sn_print_bytes(sn_caching_limit(c), limit),
                 sn_print_bytes(figures->reserved_bytes, reserved), sn_print_bytes(figures->allocated_bytes, allocated),
                 sn_print_bytes(sn_caching_largest_split(c), split));
}

sn_status sn_caching_take(sn_caching *c, uint64_t bytes, uint32_t *taken, sn_err *err) {
  const sn_caching_size size = sn_caching_size_of(bytes);
  return tell(c, bytes, sn_caching_take_size(c, &size, taken, err), err);
}

sn_status sn_caching_keep(sn_caching *c, uint64_t bytes, sn_err *err) {
  const sn_caching_size size = sn_caching_size_of(bytes);
  return tell(c, bytes, sn_caching_keep_size(c, &size, err), err);
}

sn_status sn_caching_pass(sn_caching *c, uint64_t bytes, sn_err *err) {
  const sn_caching_size size = sn_caching_size_of(bytes);
  return tell(c, bytes, sn_caching_pass_size(c, &size, err), err);
}
