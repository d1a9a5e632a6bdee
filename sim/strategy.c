/* Strategy names; see the header. */
#include "sim/strategy.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* The parts a name is made of, and what each sets. */
typedef struct part {
  const char *name;
  int offload, recompute; /* -1: not set by this part */
} part;

static const part parts[] = {
    {"baseline", -1, -1},
    {"liveness", -1, -1},
    {"offload", SN_OFFLOAD_CONV, -1},
    {"offload=conv", SN_OFFLOAD_CONV, -1},
    {"offload=checkpoints", SN_OFFLOAD_CHECKPOINTS, -1},
    {"cache", SN_OFFLOAD_CACHE, -1},
    {"recompute=speed", -1, SN_RECOMPUTE_SPEED},
    {"recompute=memory", -1, SN_RECOMPUTE_MEMORY},
    {"recompute=cost", -1, SN_RECOMPUTE_COST},
    {"superneurons", SN_OFFLOAD_CACHE, SN_RECOMPUTE_COST},
};

enum { PARTS = sizeof parts / sizeof parts[0], BASELINE = 0, LIVENESS = 1, SUPERNEURONS = PARTS - 1 };

static sn_status unknown_part(const char *text, const char *word, sn_err *err) {
  const char *names[PARTS];
  char hint[100];
  for (size_t i = 0; i < PARTS; i++) names[i] = parts[i].name;
  return sn_fail(err, SN_BAD_USAGE, "unknown strategy \"%.80s\": \"%.40s\"%s; snsim list strategies shows them", text,
                 word, sn_text_suggest(word, names, PARTS, hint, sizeof hint));
}

static sn_status clash(const char *text, const char *why, sn_err *err) {
  return sn_fail(err, SN_BAD_USAGE, "strategy \"%.80s\": %s; snsim list strategies shows what goes together", text,
                 why);
}

static sn_status add_part(const char *text, const part *p, uint32_t position, sn_strategy *s, sn_err *err) {
  if (p == &parts[BASELINE] || p == &parts[SUPERNEURONS]) {
    if (position > 0) return clash(text, "baseline and superneurons stand alone", err);
  } else if (position > 0 && p == &parts[LIVENESS] && s->liveness) {
    return clash(text, "liveness stands twice", err);
  }
  if (p != &parts[BASELINE] && (p == &parts[LIVENESS] || p == &parts[SUPERNEURONS])) s->liveness = true;
  if (p->offload >= 0) {
    if (s->offload != SN_OFFLOAD_NONE) return clash(text, "only one of offload and cache", err);
    s->offload = (sn_offload)p->offload;
  }
  if (p->recompute >= 0) {
    if (s->recompute != SN_RECOMPUTE_NONE) return clash(text, "only one kind of recompute", err);
    s->recompute = (sn_recompute)p->recompute;
  }
  return SN_OK;
}

static const part *find_part(const char *word) {
  for (size_t i = 0; i < PARTS; i++)
    if (strcmp(word, parts[i].name) == 0) return &parts[i];
  return NULL;
}

sn_status sn_strategy_parse(const char *text, sn_strategy *strategy, sn_err *err) {
  sn_strategy s = {0};
  bool alone = false;
  uint32_t position = 0;
  for (const char *rest = text; rest; position++) {
    char word[SN_STRATEGY_TEXT];
    size_t length = strcspn(rest, "+");
    snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : (int)sizeof word - 1, rest);
    const part *p = find_part(word);
    if (!p) return unknown_part(text, word, err);
    if (alone) return clash(text, "baseline and superneurons stand alone", err);
    if (add_part(text, p, position, &s, err) != SN_OK) return err->code;
    alone = p == &parts[BASELINE] || p == &parts[SUPERNEURONS];
    rest = rest[length] ? rest + length + 1 : NULL;
  }
  if (!s.liveness && (s.offload != SN_OFFLOAD_NONE || s.recompute != SN_RECOMPUTE_NONE))
    return clash(text, "offload, cache and recompute need liveness", err);
  *strategy = s;
  return SN_OK;
}

char *sn_strategy_name(sn_strategy s, char *text) {
  static const char *const offload[] = {"", "+offload", "+offload=checkpoints", "+cache"};
  static const char *const recompute[] = {"", "+recompute=speed", "+recompute=memory", "+recompute=cost"};
  if (s.liveness)
    snprintf(text, SN_STRATEGY_TEXT, "liveness%s%s", offload[s.offload], recompute[s.recompute]);
  else
    snprintf(text, SN_STRATEGY_TEXT, "baseline");
  return text;
}

/* The order of the default table: what is added comes after what it is added to. */
static const sn_strategy defaults[SN_STRATEGY_DEFAULTS] = {
    {false, SN_OFFLOAD_NONE, SN_RECOMPUTE_NONE},  {true, SN_OFFLOAD_NONE, SN_RECOMPUTE_NONE},
    {true, SN_OFFLOAD_CONV, SN_RECOMPUTE_NONE},   {true, SN_OFFLOAD_CACHE, SN_RECOMPUTE_NONE},
    {true, SN_OFFLOAD_NONE, SN_RECOMPUTE_SPEED},  {true, SN_OFFLOAD_NONE, SN_RECOMPUTE_MEMORY},
    {true, SN_OFFLOAD_NONE, SN_RECOMPUTE_COST},   {true, SN_OFFLOAD_CONV, SN_RECOMPUTE_SPEED},
    {true, SN_OFFLOAD_CONV, SN_RECOMPUTE_MEMORY}, {true, SN_OFFLOAD_CONV, SN_RECOMPUTE_COST},
    {true, SN_OFFLOAD_CACHE, SN_RECOMPUTE_SPEED}, {true, SN_OFFLOAD_CACHE, SN_RECOMPUTE_MEMORY},
    {true, SN_OFFLOAD_CACHE, SN_RECOMPUTE_COST},
};

sn_strategy sn_strategy_default(uint32_t index) {
  return defaults[index];
}

const char *sn_strategy_summary(sn_strategy s) {
  static const char *const summaries[4][4] = {
      {"free each tensor after its last use", "and drop cheap layers' outputs, re-run each once",
       "and drop cheap layers' outputs, re-run for every use",
       "and drop cheap layers' outputs, re-run as memory allows"},
      {"and send CONV outputs to the external pool", "offload, and re-run cheap layers once",
       "offload, and re-run cheap layers for every use", "offload, and re-run cheap layers as memory allows"},
      {"and send CONV, JOIN, FORK and CONCAT outputs out", "offload=checkpoints, and re-run cheap layers once",
       "offload=checkpoints, and re-run cheap layers for every use",
       "offload=checkpoints, and re-run cheap layers as memory allows"},
      {"and send least recently used tensors out when memory is short", "cache, and re-run cheap layers once",
       "cache, and re-run cheap layers for every use", "superneurons: cache, and re-run cheap layers as memory allows"},
  };
  return s.liveness ? summaries[s.offload][s.recompute] : "every tensor has its own memory for the whole iteration";
}
