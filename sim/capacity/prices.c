/* Prices; see the header. One pass over the text, line by line. */
#include "sim/capacity/prices.h"

#include "base/path.h"
#include "sim/device/device.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 200, DIGITS = 15 };

/* No hour of any card costs as much, in any currency. */
static const double most = 1e9;

typedef struct sn_price {
  char card[SN_DEVICE_NAME];
  double an_hour;
  uint32_t line;
} sn_price;

typedef struct reader {
  const char *name, *own;
  uint32_t line;
  uint32_t currency_line; /* that chose it */
  sn_prices *prices;
  sn_err *err;
} reader;

static sn_status fail_at(const reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static sn_status fail_at(const reader *r, const char *format, ...) {
  char what[400];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return sn_fail(r->err, SN_BAD_INPUT, "%.180s:%" PRIu32 ": %s", r->name, r->line, what);
}

/* ---- a card ---- */

/* The name of its profile; NULL: it has none. */
static const char *called(const reader *r, const char *card) {
  return r->own && strcmp(card, r->own) == 0 ? card : sn_device_called(card);
}

static sn_status fail_unknown(const reader *r, const char *card) {
  char hint[100];
  return fail_at(r, "unknown GPU \"%.60s\"%s; snsim list gpus shows them", card,
                 sn_device_suggest(card, hint, sizeof hint));
}

static const sn_price *find(const sn_prices *prices, const char *card) {
  for (uint32_t i = 0; i < prices->count; i++)
    if (strcmp(prices->all[i].card, card) == 0) return &prices->all[i];
  return NULL;
}

/* A first line whose columns have names, as tables have one. */
static bool is_heading(const reader *r, const char *card, const char *price) {
  return r->prices->count == 0 && !called(r, card) && !strpbrk(price, "0123456789");
}

static sn_status read_card(const reader *r, const char *text, sn_price *price) {
  const char *name = called(r, text);
  if (!name) return fail_unknown(r, text);
  const sn_price *other = find(r->prices, name);
  if (other) return fail_at(r, "%s has a price already, in line %" PRIu32 "; keep one of the two", name, other->line);
  snprintf(price->card, sizeof price->card, "%s", name);
  return SN_OK;
}

/* ---- what it costs ---- */

/* "0.44" at the start of a text; 0 where none stands there. strtod() alone would read hexadecimal and "inf" too. */
static size_t number_length(const char *text) {
  static const char digits[] = "0123456789";
  size_t whole = strspn(text, digits), part = text[whole] == '.' ? strspn(text + whole + 1, digits) : 0;
  size_t length = whole && part ? whole + 1 + part : whole;
  return whole <= DIGITS && part <= DIGITS ? length : 0;
}

static sn_status read_currency(reader *r, const char *text) {
  size_t letters = 0;
  char word[SN_CURRENCY];
  while (isalpha((unsigned char)text[letters])) letters++;
  if (letters < 2 || letters >= SN_CURRENCY || text[letters])
    return fail_at(r, "\"%.40s\" is no currency: a word of 2 to 8 letters stands behind the price, as 0.44 USD", text);
  for (size_t i = 0; i <= letters; i++) word[i] = (char)toupper((unsigned char)text[i]);
  if (!*r->prices->currency) {
    memcpy(r->prices->currency, word, sizeof word);
    r->currency_line = r->line;
  }
  if (strcmp(r->prices->currency, word) == 0) return SN_OK;
  return fail_at(r, "a price in %s, where line %" PRIu32 " has %s; all of a file are in one currency", word,
                 r->currency_line, r->prices->currency);
}

static sn_status read_price(reader *r, const char *text, sn_price *price) {
  size_t sign = text[0] == '-', length = number_length(text + sign);
  if (length == 0)
    return fail_at(r, "\"%.40s\" is no price; a line is a GPU, its price an hour and the currency: rtx4090, 0.44 USD",
                   text);
  price->an_hour = strtod(text + sign, NULL);
  if (text[sign + length] == ',' && isdigit((unsigned char)text[sign + length + 1]))
    return fail_at(r, "a price of %.40s: a price has a point and no comma, as 0.44 USD", text);
  if (sign || price->an_hour <= 0)
    return fail_at(r, "a price of %.40s: it must be above 0; leave the line out where a card costs nothing", text);
  if (price->an_hour > most) return fail_at(r, "a price of %.40s: more than 10^9 an hour", text);
  text += sign + length;
  return read_currency(r, text + strspn(text, " \t"));
}

/* ---- lines ---- */

static char *trim(char *text) {
  char *end = text + strlen(text);
  while (end > text && isspace((unsigned char)end[-1])) *--end = '\0';
  while (isspace((unsigned char)*text)) text++;
  return text;
}

/* Without its remark, as text; false where it is too long, or none. */
static bool copy_line(const char *begin, const char *end, char line[LINE]) {
  const char *remark = memchr(begin, '#', (size_t)(end - begin));
  size_t bytes = (size_t)((remark ? remark : end) - begin);
  if (bytes >= LINE) return false;
  memcpy(line, begin, bytes);
  line[bytes] = '\0';
  for (size_t i = 0; i < bytes; i++)
    if ((unsigned char)line[i] < ' ' && line[i] != '\t' && line[i] != '\r') return false;
  return true;
}

static sn_status read_line(reader *r, const char *begin, const char *end) {
  char line[LINE];
  sn_price price = {.line = r->line};
  if (!copy_line(begin, end, line))
    return fail_at(r, "the line cannot be read: it is no text of up to %d bytes", LINE - 1);
  char *card = trim(line), *comma = strchr(card, ',');
  if (!*card) return SN_OK;
  if (!comma)
    return fail_at(
        r, "\"%.60s\": a comma is missing; a line is a GPU, its price an hour and the currency: rtx4090, 0.44 USD",
        card);
  *comma = '\0';
  char *rest = trim(comma + 1);
  card = trim(card);
  if (is_heading(r, card, rest))
    return fail_at(r,
                   "\"%.40s, %.40s\" has no price, as a heading: take it out or begin it with #; a line is a GPU, its "
                   "price an hour and the currency: rtx4090, 0.44 USD",
                   card, rest);
  if (read_card(r, card, &price) != SN_OK || read_price(r, rest, &price) != SN_OK) return r->err->code;
  r->prices->all[r->prices->count++] = price; /* there is room: each card of those known has one at most */
  return SN_OK;
}

static void read_all(reader *r, const char *text, const char *end) {
  static const char mark[] = "\xef\xbb\xbf";
  if (end - text >= 3 && memcmp(text, mark, 3) == 0) text += 3;
  while (text < end && r->err->code == SN_OK) {
    const char *line = memchr(text, '\n', (size_t)(end - text));
    r->line++;
    read_line(r, text, line ? line : end);
    text = line ? line + 1 : end;
  }
  if (r->err->code != SN_OK || r->prices->count > 0) return;
  r->line = 1;
  fail_at(r, "the file has no price; a line is a GPU, its price an hour and the currency: rtx4090, 0.44 USD");
}

sn_prices *sn_prices_parse(const char *name, const char *text, size_t bytes, const char *own, sn_err *err) {
  reader r = {.name = name, .own = own, .prices = calloc(1, sizeof *r.prices), .err = err};
  if (r.prices) r.prices->all = calloc((size_t)sn_device_count() + 1, sizeof *r.prices->all);
  if (r.prices && r.prices->all)
    read_all(&r, text, text + bytes);
  else
    sn_fail_memory(err);
  if (err->code == SN_OK) return r.prices;
  sn_prices_free(r.prices);
  return NULL;
}

sn_prices *sn_prices_load(const char *path, const char *own, sn_err *err) {
  sn_prices *prices = NULL;
  path = sn_path_input(path);
  FILE *file = sn_path_open(path, err);
  char *text = file ? malloc(SN_PRICES_MOST_BYTES + 1) : NULL;
  if (!file) return NULL;
  size_t bytes = text ? fread(text, 1, SN_PRICES_MOST_BYTES + 1, file) : 0;
  if (!text)
    sn_fail_memory(err);
  else if (ferror(file))
    sn_fail(err, SN_BAD_FILE, "%.180s: cannot be read: %s", path, strerror(errno));
  else if (bytes > SN_PRICES_MOST_BYTES)
    sn_fail(err, SN_BAD_INPUT, "%.180s:1: larger than %d KiB, which no list of prices is", path,
            SN_PRICES_MOST_BYTES >> 10);
  else
    prices = sn_prices_parse(path, text, bytes, own, err);
  fclose(file);
  free(text);
  return prices;
}

void sn_prices_free(sn_prices *prices) {
  if (!prices) return;
  free(prices->all);
  free(prices);
}

double sn_prices_of(const sn_prices *prices, const char *card) {
  const sn_price *price = find(prices, card);
  return price ? price->an_hour : 0;
}
