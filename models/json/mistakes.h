/* What is wrong with a network file, all of it at once; internal to models/json/ but for sn_net_mistakes().
 *
 * Whoever reads lets each getter fail into `at` and calls sn__mistakes_note(), which puts the error on the list and
 * clears `at`, so that reading goes on. Only what ends the reading, as a lack of memory, stays in `at`. The first ones
 * are kept as text, the others counted, up to a limit that keeps a file made of mistakes from taking long.
 */
#ifndef SN_MODELS_JSON_MISTAKES_H
#define SN_MODELS_JSON_MISTAKES_H

#include "base/json.h"

enum { SN__MISTAKES_SHOWN = 20, SN__MISTAKES_COUNTED = 1000, SN_MISTAKES_TEXT = 4000 };

typedef struct sn__mistake {
  const cJSON *item; /* what it is about; NULL: the whole file */
  unsigned line;     /* 0: none */
  char text[sizeof((sn_err *)0)->text];
} sn__mistake;

typedef struct sn__mistakes {
  sn_json *doc;
  const char *file;  /* as in errors of `doc` */
  sn_err at;         /* of the reading at hand */
  const char *layer; /* that is being read; NULL: none, or one without a name, the n-th */
  uint32_t n;        /* 0: no layer is being read */
  bool again;        /* what is being read has been read before, with all its mistakes but the first of the file */
  bool failed;       /* set where there was a mistake; cleared by who asks */
  uint32_t count, n_shown;
  sn__mistake shown[SN__MISTAKES_SHOWN];
} sn__mistakes;

/* Reading goes on with what has (not) been read before, as the layers of a repeat have. */
void sn__mistakes_read(sn__mistakes *m, bool again);
/* Whether anybody would see the next mistake: if not, it needs no hint. */
bool sn__mistakes_seen(const sn__mistakes *m);
/* Puts the error in `at`, if it is SN_BAD_INPUT, on the list, with the layer that is being read. */
void sn__mistakes_note(sn__mistakes *m, const cJSON *item);
/* The same for a text of one's own. */
#define MISTAKE(m, item, ...) (sn_json_fail((m)->doc, item, &(m)->at, __VA_ARGS__), sn__mistakes_note(m, item))
/* Whether one of those shown is about `item`. */
bool sn__mistakes_have(const sn__mistakes *m, const cJSON *item);
/* Whether reading should go on: there is memory, and few enough are counted. */
bool sn__mistakes_go_on(const sn__mistakes *m);
/* The list, sorted by line: one alone as it is, several a line each behind a heading. As many as `room` holds are
 * printed, the others counted. Returns out. */
const char *sn__mistakes_print(sn__mistakes *m, char *out, size_t room);

/* What a person should read of `err`, which sn_net_load() gave for the network file `spec`: all of its list where the
 * error had no room for it, else the error's own text. `room` of SN_MISTAKES_TEXT is enough for any. Returns out. */
const char *sn_net_mistakes(const char *spec, uint32_t batch, uint32_t image, const sn_err *err, char *out,
                            size_t room);

#endif
