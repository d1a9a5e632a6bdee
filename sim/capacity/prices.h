/* Prices: what cards cost an hour, from a file of the user's. A card and its price a line; '#' begins a remark, and a
 * byte-order mark and empty lines are passed over:
 *
 *   # a cloud, on demand
 *   rtx4090, 0.44 USD
 *   A100-SXM4-80GB, 1.89 USD
 *
 * Cards are called as everywhere (sn_device_called()). The currency is a word of 2 to 8 letters, the same in every line.
 *
 *   sn_prices *prices = sn_prices_load("prices.csv", device.name, &err);
 *   double an_hour = sn_prices_of(prices, device.name);      0: the file has none
 *   sn_prices_free(prices);
 *
 * Errors are SN_BAD_INPUT (SN_BAD_FILE where the file cannot be read) and begin with "file:line: ": a card that is not
 * known, or is there twice; a price that is no number above 0; another currency; anything else; a file without a price.
 */
#ifndef SN_SIM_CAPACITY_PRICES_H
#define SN_SIM_CAPACITY_PRICES_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum { SN_PRICES_MOST_BYTES = 1 << 16, SN_CURRENCY = 9 };

typedef struct sn_prices {
  char currency[SN_CURRENCY];
  uint32_t count;
  struct sn_price *all; /* in the order of the file */
} sn_prices;

/* `own`: the name of a card of the user's own, which is known beside those of sn_device_count(); NULL: none. O(lines *
 * cards). */
sn_prices *sn_prices_load(const char *path, const char *own, sn_err *err);
/* The same of text that was read already; `name` stands for the file in messages. */
sn_prices *sn_prices_parse(const char *name, const char *text, size_t bytes, const char *own, sn_err *err);
void sn_prices_free(sn_prices *prices);

/* Of an hour, above 0; 0 where there is none for the card, which is a device's name. */
double sn_prices_of(const sn_prices *prices, const char *card);

#endif
