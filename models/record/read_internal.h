/* Reading recordings (internal to models/record/): read.c takes lines and the head, read_tables.c the
 * tables, read_events.c events. */
#ifndef SN_MODELS_RECORD_READ_INTERNAL_H
#define SN_MODELS_RECORD_READ_INTERNAL_H

#include "base/arena.h"
#include "models/record/record.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What grows while a file is read; handed over to the record's arena when it ends. */
typedef struct sn__list {
  void *items;
  uint32_t count, room;
} sn__list;

/* Where a storage, a handle or a ghost is in its life. */
typedef enum sn__life { SN__UNBORN, SN__ALIVE, SN__DEAD } sn__life;

/* Of a storage: whether Python has it, and how many handles and ghosts do. Of a handle or ghost: whose it is. */
typedef struct sn__alive {
  uint32_t life : 2, holders : 30; /* sn__life */
  uint32_t storage;
} sn__alive;

/* Where in a list items stand that came lately, by their bytes. */
enum { SN__RECENT = 1024 };
typedef struct sn__recent {
  uint32_t place[SN__RECENT]; /* from 1; 0: none */
} sn__recent;

/* Items of the list at hand. */
typedef struct sn__quick {
  cJSON *items;
  size_t used;
} sn__quick;

typedef struct sn__reader {
  const char *path;
  unsigned line;
  sn_record *record;
  sn_arena *arena;
  sn__list ops, refs, arguments, events, sizes, works, convs, products;
  sn__recent recent_sizes, recent_works, recent_convs, recent_products;
  sn__list storages, handles, ghosts; /* sn__alive */
  sn__list call_stack;                /* uint32_t */
  sn__quick quick;
  uint32_t tables; /* bit n: the n-th has been there */
  uint32_t n_born; /* storages */
  bool ended;
  bool begun;    /* an iteration has */
  bool backward; /* the phase by now */
  sn_err *err;
} sn__reader;

/* SN_BAD_INPUT, with file and line ahead; printf style. */
#define sn__read_fail(r, ...) (sn_fail((r)->err, SN_BAD_INPUT, __VA_ARGS__), sn__read_place(r), SN_BAD_INPUT)
void sn__read_place(const sn__reader *r);
#define SN__NO_JSON "this line is no JSON: the file is damaged or cut off"

/* Room for so many items of `size` bytes in a list that is empty: what is not used of it costs nothing, and nothing is
 * copied as it fills. */
sn_status sn__list_expect(sn__reader *r, sn__list *list, size_t items, size_t size);
/* Room for one more item of `size` bytes, zeroed; NULL after an error. */
void *sn__list_add(sn__reader *r, sn__list *list, size_t size);
/* The items of a list that is complete, in the arena and without the room that is left; NULL where there are none, or
 * after an error. */
void *sn__list_adopt(sn__reader *r, sn__list *list, size_t size);
/* The place of an item that is the same byte for byte, which is added where none came lately. */
sn_status sn__list_share(sn__reader *r, sn__list *list, sn__recent *recent, const void *item, size_t size,
                         uint32_t *place);

/* A whole number, `what` names it in errors. */
sn_status sn__read_count(const sn__reader *r, const cJSON *item, const char *what, uint64_t low, uint64_t high,
                         uint64_t *out);
/* An id of a table of `count` rows. */
sn_status sn__read_id(const sn__reader *r, const cJSON *item, const char *what, uint32_t count, uint32_t *out);
/* [a, b], or a alone. */
sn_status sn__read_size(const sn__reader *r, const cJSON *item, const char *what, sn_record_size *out);

/* Shapes of a convolution. *known is false where they are of volumes, or grow in more than the batch. */
sn_status sn__read_conv(const sn__reader *r, const cJSON *shapes, sn_record_conv *conv, bool *known);
/* Of a product. *known is false where its last two operands are no matrices, or lists of them. */
sn_status sn__read_product(const sn__reader *r, const cJSON *shapes, sn_record_product *product, bool *known);

/* Item i of a row; NULL where it has none, which is no number and no text. */
const cJSON *sn__read_item(const cJSON *row, int i);
/* A text, made safe for a terminal, of the record's arena. */
sn_status sn__read_text(sn__reader *r, const cJSON *item, const char *what, const char **out);

/* The list that begins at *at, of lists, whole numbers and words, in place; *at moves behind it. NULL: it is more than
 * that, or no JSON, and stands there as before. What it gives lasts until the next one. */
const cJSON *sn__quick_row(sn__quick *pool, char **at);
/* The same of a line, of `length` bytes before its 0, that is one such list. */
const cJSON *sn__quick_parse(sn__quick *pool, char *line, size_t length);
void sn__quick_clear(sn__quick *pool);

/* A line that is an object: tables by their names. */
sn_status sn__read_tables(sn__reader *r, char *line, size_t length);
/* One event; `item` is its array. */
sn_status sn__read_event(sn__reader *r, const cJSON *item);
/* Behind the last event: modules have been left, an iteration was there. */
sn_status sn__read_events_end(sn__reader *r);

#endif
