/* Strategy names; see the header. */
#include "sim/policy/strategy.h"

#include "base/text.h"
#include "sim/graph/route.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The parts a name is made of, and what each sets; nothing stands twice. */
typedef struct part {
  const char *name;
  bool alone; /* no other part beside it */
  sn_liveness liveness;
  sn_offload offload;
  sn_recompute recompute;
  sn_dialect_id dialect;
  sn_order order;
  bool dynamic;
} part;

static const part parts[] = {
    {.name = "baseline", .alone = true},
    {.name = "superneurons",
     .alone = true,
     .liveness = SN_LIVENESS_FULL,
     .offload = SN_OFFLOAD_CACHE,
     .recompute = SN_RECOMPUTE_COST},
    {.name = "liveness", .liveness = SN_LIVENESS_FULL},
    {.name = "offload", .offload = SN_OFFLOAD_CONV},
    {.name = "offload=conv", .offload = SN_OFFLOAD_CONV},
    {.name = "offload=checkpoints", .offload = SN_OFFLOAD_CHECKPOINTS},
    {.name = "cache", .offload = SN_OFFLOAD_CACHE},
    {.name = "recompute=speed", .recompute = SN_RECOMPUTE_SPEED},
    {.name = "recompute=memory", .recompute = SN_RECOMPUTE_MEMORY},
    {.name = "recompute=cost", .recompute = SN_RECOMPUTE_COST},
    {.name = "recompute=units", .recompute = SN_RECOMPUTE_UNITS},
    {.name = "recompute=selective", .recompute = SN_RECOMPUTE_SELECTIVE},
    {.name = "recompute=attention", .recompute = SN_RECOMPUTE_ATTENTION},
    {.name = "recompute=sqrt", .recompute = SN_RECOMPUTE_SQRT},
    {.name = "recompute=optimal", .recompute = SN_RECOMPUTE_OPTIMAL},
    {.name = "recompute=dtr", .recompute = SN_RECOMPUTE_DTR},
    {.name = "pytorch", .liveness = SN_LIVENESS_FULL, .dialect = SN_DIALECT_PYTORCH},
    {.name = "pytorch-1.7", .liveness = SN_LIVENESS_FULL, .dialect = SN_DIALECT_PYTORCH_1_7},
    {.name = "explicit", .liveness = SN_LIVENESS_FULL, .dialect = SN_DIALECT_EXPLICIT},
    {.name = "dynamic", .dynamic = true},
    {.name = "singa-layer",
     .alone = true,
     .liveness = SN_LIVENESS_CARRIED,
     .dialect = SN_DIALECT_SINGA,
     .order = SN_ORDER_SERIAL},
    {.name = "singa-serial",
     .alone = true,
     .liveness = SN_LIVENESS_FULL,
     .dialect = SN_DIALECT_SINGA,
     .order = SN_ORDER_SERIAL},
    {.name = "singa-bfs",
     .alone = true,
     .liveness = SN_LIVENESS_FULL,
     .dialect = SN_DIALECT_SINGA,
     .order = SN_ORDER_BFS},
    {.name = "caffe", .alone = true, .liveness = SN_LIVENESS_TAKE_OVER},
    {.name = "torch7", .alone = true, .liveness = SN_LIVENESS_GRADIENTS},
    {.name = "mxnet", .alone = true, .liveness = SN_LIVENESS_FULL, .recompute = SN_RECOMPUTE_LAYERS},
    {.name = "tensorflow", .alone = true, .liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_LONG_LIVED},
    {.name = "vdnn-all", .alone = true, .liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_INPUTS},
    {.name = "vdnn-conv", .alone = true, .liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_CONV_INPUTS},
    {.name = "superneurons-paper",
     .alone = true,
     .liveness = SN_LIVENESS_FULL,
     .offload = SN_OFFLOAD_NARROW_CACHE,
     .recompute = SN_RECOMPUTE_COST},
};

enum {
  PARTS = sizeof parts / sizeof parts[0],
  FIRST_SYSTEM = PARTS - SN_STRATEGY_SYSTEMS,
  SINGA = 3,
  FIRST_SINGA = FIRST_SYSTEM - SINGA
};

static const char corun_part[] = "corun=";
static const char alone_text[] = "baseline, superneurons and published systems stand alone; add to liveness, as in "
                                 "liveness+cache";

static const char units_part[] = "recompute=units:";
enum { MOST_UNITS = 1000000 };

/* "recompute=units:6": the first six. */
static bool is_some_units(const char *word) {
  return strncmp(word, units_part, sizeof units_part - 1) == 0;
}

static const char *add_some_units(const char *count, sn_strategy *s) {
  char *end;
  unsigned long units = *count >= '0' && *count <= '9' ? strtoul(count, &end, 10) : 0;
  if (s->recompute) return "only one kind of recompute";
  if (units == 0 || units > MOST_UNITS || *end)
    return "recompute=units:N checkpoints the first N units, a whole number from 1; try pytorch+recompute=units:2";
  s->recompute = SN_RECOMPUTE_UNITS;
  s->units = (uint32_t)units;
  return NULL;
}

/* MXNet's words for what is a graph here. */
static bool is_sharing(const char *word) {
  return strcmp(word, "sharing") == 0 || strcmp(word, "inplace") == 0 || strcmp(word, "in-place") == 0;
}

static sn_status parse(const char *text, sn_strategy *strategy, bool hints, sn_err *err);

/* The strategy with `near` in place of its part `word`, with what it goes on from where it needs that; else nothing. */
static const char *suggest(const char *text, const char *word, const char *near, char *out, size_t room) {
  static const char *const bases[] = {"", "pytorch+", "liveness+"};
  const char *at = strstr(text, word);
  char whole[100];
  out[0] = '\0';
  for (size_t i = 0; near && at && i < sizeof bases / sizeof bases[0] && !*out; i++) {
    sn_strategy s;
    sn_err reason = SN_ERR_INIT;
    int length = snprintf(whole, sizeof whole, "%s%.*s%s%s", bases[i], (int)(at - text), text, near, at + strlen(word));
    if (length < (int)sizeof whole && parse(whole, &s, false, &reason) == SN_OK)
      snprintf(out, room, " (did you mean \"%s\"?)", whole);
  }
  return out;
}

static sn_status unknown_part(const char *text, const char *word, bool hints, sn_err *err) {
  const char *names[PARTS + 1] = {"corun=path"};
  char hint[140], which[64] = "";
  if (is_sharing(word))
    return sn_fail(err, SN_BAD_USAGE,
                   "strategy \"%.80s\": sharing, MXNet's, is what the graph explicit does; try explicit or "
                   "explicit+dynamic, or snsim memcost, which shows what it saves",
                   text);
  if (sn_text_same(word, "torch"))
    return sn_fail(err, SN_BAD_USAGE, "strategy \"%.80s\": torch7 is Torch of 2015; PyTorch is pytorch", text);
  if (strncmp(word, "checkpoint", strlen("checkpoint")) == 0 ||
      strncmp(word, "gradient_checkpoint", strlen("gradient_checkpoint")) == 0)
    return sn_fail(err, SN_BAD_USAGE,
                   "strategy \"%.80s\": torch.utils.checkpoint is recompute=units, as in pytorch+recompute=units",
                   text);
  if (sn_text_same(word, "sac") || strncmp(word, "selective", strlen("selective")) == 0)
    return sn_fail(err, SN_BAD_USAGE,
                   "strategy \"%.80s\": selective activation checkpointing is recompute=selective, as in "
                   "pytorch+recompute=selective",
                   text);
  for (size_t i = 0; i < PARTS; i++) names[i + 1] = parts[i].name;
  if (!*word)
    snprintf(which, sizeof which, ": a part of it is empty");
  else if (strcmp(text, word) != 0)
    snprintf(which, sizeof which, ": \"%.40s\"", word);
  return sn_fail(err, SN_BAD_USAGE, "unknown strategy \"%.80s\"%s%s; snsim list strategies shows them", text, which,
                 suggest(text, word, hints ? sn_text_nearest(word, names, PARTS + 1) : NULL, hint, sizeof hint));
}

static const part *find_part(const char *word) {
  for (size_t i = 0; i < PARTS; i++)
    if (strcmp(word, parts[i].name) == 0) return &parts[i];
  return NULL;
}

static bool is_corun(const char *word) {
  return strncmp(word, corun_part, sizeof corun_part - 1) == 0;
}

/* Adds a part to what is there; the reason where it cannot be combined with it. */
static const char *add_part(const part *p, bool first, sn_strategy *s) {
  if (p->alone && !first) return alone_text;
  if (p->liveness && s->liveness) return "only one of liveness, pytorch and explicit";
  if (p->offload && s->offload) return "only one of offload and cache";
  if (p->recompute && s->recompute) return "only one kind of recompute";
  if (p->liveness) s->liveness = p->liveness;
  if (p->offload) s->offload = p->offload;
  if (p->recompute) s->recompute = p->recompute;
  if (p->dialect) s->dialect = p->dialect;
  if (p->order) s->order = p->order;
  if (p->dynamic) s->dynamic = true;
  return NULL;
}

/* The same, of a policy; with `err` where there is no such policy. */
static const char *add_corun(const char *policy, sn_strategy *s, sn_err *err) {
  if (sn_strategy_is_corun(*s)) return "only one corun";
  sn_policy_parse(policy, &s->corun, err);
  return NULL;
}

/* Of stages: any layer may run again, and what they do without copies and cores is all that is known of them. */
static bool has_stages(sn_strategy s) {
  return s.recompute == SN_RECOMPUTE_SQRT || sn_strategy_adapts(s);
}

static bool is_pytorch(sn_strategy s) {
  return sn_dialect_of(s.dialect)->eager;
}

/* Whole modules run again, but for what a policy keeps of them. */
static bool has_units(sn_strategy s) {
  return s.recompute == SN_RECOMPUTE_UNITS || s.recompute == SN_RECOMPUTE_SELECTIVE ||
         s.recompute == SN_RECOMPUTE_ATTENTION;
}

/* What goes together; "offload" is what the graph at hand means by it. The reason where something does not. */
static const char *settle(sn_strategy *s) {
  if (s->dialect == SN_DIALECT_SINGA) return NULL; /* alone */
  if (!s->liveness) return "offload, cache, recompute and corun need liveness, or a framework's graph";
  if (sn_strategy_is_corun(*s) && s->dialect) return "only SuperNeurons' graph is run side by side: liveness+corun=..";
  if (sn_strategy_is_corun(*s) && s->offload)
    return "corun cannot be combined with offload or cache, whose copies are planned for operations that run one after "
           "another";
  if (s->dynamic && s->dialect != SN_DIALECT_EXPLICIT) return "only explicit can be dynamic";
  if (s->dialect == SN_DIALECT_EXPLICIT && (s->offload || s->recompute))
    return "the graph explicit is planned whole; try explicit or explicit+dynamic";
  bool plans_copies = s->recompute == SN_RECOMPUTE_OPTIMAL && s->offload == SN_OFFLOAD_CONV && !s->dialect;
  if (plans_copies) s->offload = SN_OFFLOAD_PLANNED;
  if (has_stages(*s) && ((s->offload && !plans_copies) || sn_strategy_is_corun(*s)))
    return "recompute=sqrt, optimal and dtr go without offload, cache and corun, but for "
           "liveness+offload+recompute=optimal";
  if (!is_pytorch(*s))
    return has_units(*s) ? "recompute=units, selective and attention are PyTorch's; try pytorch+recompute=units" : NULL;
  if (s->offload == SN_OFFLOAD_CONV) s->offload = SN_OFFLOAD_SAVED;
  if (s->offload && s->offload != SN_OFFLOAD_SAVED)
    return "PyTorch has no cache and one kind of offload; try pytorch+offload";
  if (s->offload && s->recompute == SN_RECOMPUTE_SELECTIVE)
    return "what selective checkpoints keep stays on the GPU; try pytorch+offload+recompute=units";
  if (s->recompute && !has_units(*s) && s->recompute != SN_RECOMPUTE_OPTIMAL)
    return "PyTorch re-runs whole units; try pytorch+recompute=units or pytorch+recompute=optimal";
  return NULL;
}

/* `hints`: an unknown part is told with the one that may be meant. */
static sn_status parse(const char *text, sn_strategy *strategy, bool hints, sn_err *err) {
  sn_strategy s = {0};
  const char *why = NULL;
  bool alone = false;
  for (const char *rest = text; rest && !why;) {
    char word[SN_STRATEGY_TEXT];
    size_t length = strcspn(rest, "+");
    snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : (int)sizeof word - 1, rest);
    const part *p = find_part(word);
    if (!p && !is_corun(word) && !is_some_units(word)) return unknown_part(text, word, hints, err);
    why = alone                 ? alone_text
          : p                   ? add_part(p, rest == text, &s)
          : is_some_units(word) ? add_some_units(word + sizeof units_part - 1, &s)
                                : add_corun(word + sizeof corun_part - 1, &s, err);
    if (err->code != SN_OK) return sn_err_prefix(err, "strategy \"%.80s\"", text), err->code;
    alone = p && p->alone;
    rest = rest[length] ? rest + length + 1 : NULL;
  }
  if (!why && (s.liveness || s.offload || s.recompute || s.dynamic || sn_strategy_is_corun(s))) why = settle(&s);
  if (why)
    return sn_fail(err, SN_BAD_USAGE, "strategy \"%.80s\": %s; snsim list strategies shows what goes together", text,
                   why);
  *strategy = s;
  return SN_OK;
}

sn_status sn_strategy_parse(const char *text, sn_strategy *strategy, sn_err *err) {
  return parse(text, strategy, true, err);
}

bool sn_strategy_same(sn_strategy a, sn_strategy b) {
  return a.liveness == b.liveness && a.offload == b.offload && a.recompute == b.recompute && a.units == b.units &&
         a.dialect == b.dialect && a.order == b.order && a.dynamic == b.dynamic && sn_policy_same(a.corun, b.corun);
}

sn_strategy sn_strategy_system(uint32_t index) {
  const part *p = &parts[FIRST_SYSTEM + index];
  return (sn_strategy){.liveness = p->liveness, .offload = p->offload, .recompute = p->recompute};
}

static sn_strategy singa_strategy(uint32_t index) {
  const part *p = &parts[FIRST_SINGA + index];
  return (sn_strategy){.liveness = p->liveness, .dialect = p->dialect, .order = p->order};
}

static uint32_t singa_number(sn_strategy s) {
  uint32_t i = 0;
  while (i + 1 < SINGA && !sn_strategy_same(singa_strategy(i), s)) i++;
  return i; /* one of them: there are no others of that dialect */
}

sn_strategy sn_strategy_framework(uint32_t index) {
  static const sn_strategy frameworks[SN_STRATEGY_EXECUTED] = {
      {.dialect = SN_DIALECT_PYTORCH},
      {.dialect = SN_DIALECT_PYTORCH, .recompute = SN_RECOMPUTE_UNITS},
      {.dialect = SN_DIALECT_PYTORCH, .offload = SN_OFFLOAD_SAVED},
      {.dialect = SN_DIALECT_PYTORCH, .offload = SN_OFFLOAD_SAVED, .recompute = SN_RECOMPUTE_UNITS},
      {.dialect = SN_DIALECT_PYTORCH_1_7},
      {.dialect = SN_DIALECT_EXPLICIT},
      {.dialect = SN_DIALECT_EXPLICIT, .dynamic = true},
  };
  if (index >= SN_STRATEGY_EXECUTED) return singa_strategy(index - SN_STRATEGY_EXECUTED);
  sn_strategy s = frameworks[index];
  s.liveness = SN_LIVENESS_FULL;
  return s;
}

sn_order sn_strategy_order(sn_strategy strategy) {
  return strategy.dialect == SN_DIALECT_EXPLICIT ? SN_ORDER_POST : strategy.order;
}

uint32_t sn_strategy_graph(sn_strategy strategy) {
  return strategy.dialect == SN_DIALECT_SINGA ? SN_DIALECT_SINGA + singa_number(strategy) : strategy.dialect;
}

static const char *refuses_selective(sn_iteration iteration) {
  const sn_mesh *mesh = &iteration.mesh;
  if (sn_precision_is_amp(iteration.precision))
    return "of selective checkpoints under autocast it is not known here which copies stay; ask for bf16, "
           "bf16-master with fsdp, or recompute=units";
  if (sn_mesh_size(mesh, SN_MESH_PP) > 1)
    return "selective checkpoints are of fsdp, dp and tp; stages of a pipeline run units again whole (recompute=units)";
  return NULL;
}

static const char *refuses_precision(sn_strategy strategy, sn_iteration iteration) {
  const sn_precision precision = iteration.precision;
  if (iteration.master && !sn_dialect_of(strategy.dialect)->eager)
    return "bf16-master is of PyTorch's strategies; SuperNeurons' have bf16 and fp16";
  if (sn_precision_is_wide(precision) || sn_dialect_of(strategy.dialect)->eager) return NULL;
  if (sn_precision_is_amp(precision)) return "autocast is PyTorch's; SuperNeurons' strategies have bf16 and fp16";
  if (strategy.dialect == SN_DIALECT_SINGA || sn_strategy_is_system(strategy))
    return "what is known of published systems trains in four bytes; they have fp32 and tf32";
  if (sn_strategy_is_corun(strategy)) return "operations side by side run on cores, in four bytes";
  return NULL;
}

const char *sn_strategy_refuses(sn_strategy strategy, sn_iteration iteration) {
  if (sn_iteration_accumulates(iteration) && strategy.dialect == SN_DIALECT_SINGA)
    return "SINGA updates a parameter right behind its gradient, so that no gradients are accumulated";
  const char *why = refuses_precision(strategy, iteration);
  if (!why && strategy.recompute == SN_RECOMPUTE_SELECTIVE) why = refuses_selective(iteration);
  if (why) return why;
  if (*sn_iteration_freeze(iteration) && !sn_dialect_of(strategy.dialect)->eager)
    return "frozen layers are of PyTorch's strategies; others train all";
  if (!sn_mesh_is_one(&iteration.mesh)) {
    bool known = strategy.recompute == SN_RECOMPUTE_NONE || has_units(strategy);
    bool divided = sn_mesh_size(&iteration.mesh, SN_MESH_TP) > 1 || sn_mesh_size(&iteration.mesh, SN_MESH_PP) > 1;
    bool older = strategy.dialect == SN_DIALECT_PYTORCH_1_7;
    if (older && divided) return "tp and pp are of pytorch as it is now";
    if ((!older && strategy.dialect != SN_DIALECT_PYTORCH) || sn_strategy_is_corun(strategy))
      return "several GPUs are PyTorch's";
    if (strategy.offload != SN_OFFLOAD_NONE && sn_mesh_size(&iteration.mesh, SN_MESH_PP) > 1)
      return "stages of a pipeline keep what they save on the GPU";
    if (strategy.recompute != SN_RECOMPUTE_NONE && iteration.mesh.schedule == SN_SCHEDULE_ZB_H1)
      return "zb-h1 cuts backward in two, which is not simulated where blocks run again; ask for schedule=1f1b";
    if (!known)
      return "of several GPUs units run again, all or some of them (recompute=units), or but for some results "
             "(recompute=selective)";
  }
  if (!iteration.inference) return NULL;
  if (strategy.dialect == SN_DIALECT_SINGA) return "what is known of SINGA is the graph that trains";
  if (strategy.recompute != SN_RECOMPUTE_NONE) return "without a backward pass nothing is recomputed";
  if (strategy.offload != SN_OFFLOAD_NONE && strategy.offload != SN_OFFLOAD_CACHE)
    return "without a backward pass nothing has to be brought back that could be offloaded";
  return NULL;
}

bool sn_strategy_is_simulated(sn_strategy strategy) {
  return strategy.dialect == SN_DIALECT_SINGA;
}

/* SN_STRATEGY_SYSTEMS where it is none of them. */
static uint32_t system_number(sn_strategy s) {
  uint32_t i = 0;
  while (i < SN_STRATEGY_SYSTEMS && !sn_strategy_same(sn_strategy_system(i), s)) i++;
  return i;
}

bool sn_strategy_is_system(sn_strategy strategy) {
  return system_number(strategy) < SN_STRATEGY_SYSTEMS;
}

enum { CORUN_TEXT = sizeof corun_part + SN_POLICY_NAME };

/* "corun=path"; "" where operations run one after another. */
static const char *corun_text(sn_strategy s, char text[CORUN_TEXT]) {
  char name[SN_POLICY_NAME];
  *text = '\0';
  if (sn_strategy_is_corun(s)) snprintf(text, CORUN_TEXT, "%s%s", corun_part, sn_policy_name(s.corun, name));
  return text;
}

enum { UNITS_TEXT = 12 };

/* ":6"; "" where all units are checkpointed, or none. */
static const char *some_units_text(sn_strategy s, char text[UNITS_TEXT]) {
  *text = '\0';
  if (s.units > 0) snprintf(text, UNITS_TEXT, ":%" PRIu32, s.units);
  return text;
}

char *sn_strategy_name(sn_strategy s, char *text) {
  static const char *const offload[SN_OFFLOADS] = {[SN_OFFLOAD_NONE] = "",
                                                   [SN_OFFLOAD_CONV] = "+offload",
                                                   [SN_OFFLOAD_CHECKPOINTS] = "+offload=checkpoints",
                                                   [SN_OFFLOAD_CACHE] = "+cache",
                                                   [SN_OFFLOAD_PLANNED] = "+offload"};
  static const char *const recompute[SN_RECOMPUTES] = {
      [SN_RECOMPUTE_NONE] = "",
      [SN_RECOMPUTE_SPEED] = "+recompute=speed",
      [SN_RECOMPUTE_MEMORY] = "+recompute=memory",
      [SN_RECOMPUTE_COST] = "+recompute=cost",
      [SN_RECOMPUTE_LAYERS] = "",
      [SN_RECOMPUTE_UNITS] = "+recompute=units",
      [SN_RECOMPUTE_SQRT] = "+recompute=sqrt",
      [SN_RECOMPUTE_OPTIMAL] = "+recompute=optimal",
      [SN_RECOMPUTE_DTR] = "+recompute=dtr",
      [SN_RECOMPUTE_SELECTIVE] = "+recompute=selective",
      [SN_RECOMPUTE_ATTENTION] = "+recompute=attention",
  };
  uint32_t number = system_number(s);
  char policy[CORUN_TEXT], units[UNITS_TEXT];
  if (s.dialect == SN_DIALECT_SINGA)
    snprintf(text, SN_STRATEGY_TEXT, "%s", parts[FIRST_SINGA + singa_number(s)].name);
  else if (s.dialect)
    snprintf(text, SN_STRATEGY_TEXT, "%s%s%s%s%s", sn_dialect_of(s.dialect)->name, s.offload ? "+offload" : "",
             recompute[s.recompute], some_units_text(s, units), s.dynamic ? "+dynamic" : "");
  else if (number < SN_STRATEGY_SYSTEMS)
    snprintf(text, SN_STRATEGY_TEXT, "%s", parts[FIRST_SYSTEM + number].name);
  else if (s.liveness)
    snprintf(text, SN_STRATEGY_TEXT, "liveness%s%s%s%s", offload[s.offload], recompute[s.recompute],
             sn_strategy_is_corun(s) ? "+" : "", corun_text(s, policy));
  else
    snprintf(text, SN_STRATEGY_TEXT, "baseline");
  return text;
}

/* The order of the default table: what is added comes after what it is added to. */
#define FULL(with_offload, with_recompute)                                                                             \
  { .liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_##with_offload, .recompute = SN_RECOMPUTE_##with_recompute }
static const sn_strategy defaults[SN_STRATEGY_DEFAULTS] = {
    {.liveness = SN_LIVENESS_NONE},
    FULL(NONE, NONE),
    FULL(CONV, NONE),
    FULL(CACHE, NONE),
    FULL(NONE, SPEED),
    FULL(NONE, MEMORY),
    FULL(NONE, COST),
    FULL(CONV, SPEED),
    FULL(CONV, MEMORY),
    FULL(CONV, COST),
    FULL(CACHE, SPEED),
    FULL(CACHE, MEMORY),
    FULL(CACHE, COST),
};

sn_strategy sn_strategy_default(uint32_t index) {
  return defaults[index];
}

sn_strategy sn_strategy_shown(uint32_t index) {
  return index == 0 ? sn_strategy_framework(0) : sn_strategy_default(index - 1);
}

const char *sn_strategy_summary(sn_strategy s) {
  static const char *const summaries[4][4] = {
      {"frees each tensor after its last use", "drops outputs of cheap layers, runs each again once",
       "drops outputs of cheap layers, runs them again for every use",
       "drops outputs of cheap layers, runs them again as l_peak allows"},
      {"sends CONV outputs out after use and fetches them ahead of need", "offload, and re-runs cheap layers once",
       "offload, and re-runs cheap layers for every use", "offload, and re-runs cheap layers as l_peak allows"},
      {"offload, of JOIN, FORK and CONCAT outputs too", "offload=checkpoints, and re-runs cheap layers once",
       "offload=checkpoints, and re-runs cheap layers for every use",
       "offload=checkpoints, and re-runs cheap layers as l_peak allows"},
      {"sends the least recently used tensors out, only when memory is short", "cache, and re-runs cheap layers once",
       "cache, and re-runs cheap layers for every use",
       "superneurons: cache, and re-runs cheap layers as l_peak allows"},
  };
  static const char *const systems[SN_STRATEGY_SYSTEMS] = {
      "Caffe: everything has memory of its own, but gradients take over dead outputs on chains",
      "Torch 7: outputs stay, gradients on chains share memory",
      "MXNet: liveness, and re-runs ACT, LRN and POOL layers once",
      "TensorFlow: liveness, and swaps outputs unused for 3/4 of the iteration, through pageable memory",
      "vDNN: liveness, and sends the inputs of all layers out, fetching each one step ahead",
      "vDNN: liveness, and sends the inputs of CONVs out, fetching each one CONV ahead",
      "SuperNeurons as measured in its paper: superneurons, but only CONV and FORK outputs leave the device",
  };
  static const char *const pytorch[2][2] = {
      {"PyTorch 2: what backward keeps stays, the rest is freed",
       "pytorch, the units of the net in torch.utils.checkpoint"},
      {"pytorch, in torch.autograd.graph.save_on_cpu", "pytorch, units checkpointed and what they keep on the CPU"}};
  static const char *const singa[SINGA] = {
      "SINGA, simulated only: what backward reads stays until the next forward has ended",
      "SINGA's graph, simulated only: tensors live from first to last use",
      "SINGA's graph, simulated only, its operations breadth first"};
  uint32_t number = system_number(s);
  if (s.dialect == SN_DIALECT_SINGA) return singa[singa_number(s)];
  if (s.dialect == SN_DIALECT_PYTORCH_1_7 && !s.offload && !s.recompute)
    return "PyTorch 1.7: gradients that meet make a third tensor";
  if (is_pytorch(s) && s.recompute == SN_RECOMPUTE_OPTIMAL)
    return "pytorch, modules in torch.utils.checkpoint as memory asks for it, least time lost";
  if (s.recompute == SN_RECOMPUTE_ATTENTION)
    return "pytorch, attention of several operations checkpointed, as Megatron-LM's selective recomputation";
  if (s.recompute == SN_RECOMPUTE_SELECTIVE)
    return "pytorch, units checkpointed but for each second product of matrices and fused attention";
  if (is_pytorch(s)) return pytorch[s.offload != 0][s.recompute != 0];
  if (s.dialect == SN_DIALECT_EXPLICIT)
    return s.dynamic ? "explicit, with memory given as it is asked for"
                     : "MXNet 1.2.1's graph, in place wherever it may be";
  if (number < SN_STRATEGY_SYSTEMS) return systems[number];
  if (sn_strategy_is_corun(s)) return "liveness, and runs operations side by side on the cores of a device";
  if (s.recompute == SN_RECOMPUTE_SQRT) return "keeps some outputs, runs what lies between them again once";
  if (s.offload == SN_OFFLOAD_PLANNED)
    return "re-runs layers or sends tensors out so as to lose least time in the memory there is";
  if (s.recompute == SN_RECOMPUTE_OPTIMAL) return "re-runs any layers so as to lose least time in the memory there is";
  if (s.recompute == SN_RECOMPUTE_DTR)
    return "evicts what is cheap and stale when memory is short, re-runs it when read";
  return s.liveness ? summaries[s.offload][s.recompute] : "every tensor has its own memory for the whole iteration";
}

bool sn_strategy_has_cache(sn_strategy strategy) {
  return strategy.offload == SN_OFFLOAD_CACHE || strategy.offload == SN_OFFLOAD_NARROW_CACHE;
}

char *sn_strategy_sentence(sn_strategy s, char *text) {
  static const char *const offload[SN_OFFLOADS] = {
      [SN_OFFLOAD_NONE] = "",
      [SN_OFFLOAD_CONV] =
          "; sends the outputs of convolutions to host memory during the forward pass and fetches them ahead of need",
      [SN_OFFLOAD_CHECKPOINTS] = ("; sends the outputs of convolutions, joins, forks and concatenations to host memory "
                                  "during the forward pass and fetches them ahead of need"),
      [SN_OFFLOAD_CACHE] = "; sends the least recently used tensors to host memory, but only when the GPU is full",
      [SN_OFFLOAD_PLANNED] = "; sends to host memory what the link has time for and fetches it ahead of need"};
  static const char *const recompute[SN_RECOMPUTES] = {
      "",
      "; drops the outputs of cheap layers and computes them a second time in the backward pass",
      ("; drops the outputs of cheap layers and computes them again for every use in the backward pass, which takes "
       "least memory"),
      ("; drops the outputs of cheap layers and computes them again, once where the memory allows it, else for every "
       "use"),
      "",
      "",
      "; keeps some outputs of the forward pass and computes what lies between two of them a second time",
      ("; computes again whatever loses least time in the memory there is, outputs of convolutions too"),
      ("; evicts what is cheap to compute and long unused whenever memory is short, and computes it again as soon as "
       "it "
       "is read, as DTR does"),
      "",
      ""};
  if (s.dialect || system_number(s) < SN_STRATEGY_SYSTEMS)
    snprintf(text, SN_STRATEGY_SENTENCE, "%s", sn_strategy_summary(s));
  else if (!s.liveness)
    snprintf(text, SN_STRATEGY_SENTENCE, "keeps every tensor in memory of its own for the whole iteration");
  else
    snprintf(text, SN_STRATEGY_SENTENCE, "frees each tensor after its last use%s%s%s", offload[s.offload],
             recompute[s.recompute],
             sn_strategy_is_corun(s) ? "; runs operations side by side on the device's cores" : "");
  return text;
}

bool sn_strategy_is_pageable(sn_strategy strategy) {
  return strategy.offload == SN_OFFLOAD_LONG_LIVED;
}
