/* Globs over the names of layers; see the header. */
#include "sim/graph/freeze.h"

#include "base/arena.h"
#include "base/text.h"
#include "base/utf8.h"

#include <string.h>

/* Only the last `*` is ever tried again, so that no pattern takes longer than its length times the name's. fnmatch(3)
 * promises no such bound, and brackets, which names may hold, mean something to it. */
static bool glob_matches(const char *glob, const char *end, const char *name) {
  const char *star = NULL, *resume = NULL;
  while (*name) {
    if (glob < end && *glob == '*') {
      star = glob++;
      resume = name;
    } else if (glob < end && (*glob == '?' || *glob == *name)) {
      glob++;
      name++;
    } else if (star) {
      glob = star + 1;
      name = ++resume;
    } else {
      return false;
    }
  }
  while (glob < end && *glob == '*') glob++;
  return glob == end;
}

static const char *end_of(const char *glob) {
  return glob + strcspn(glob, ",");
}

bool sn_freeze_matches(const char *freeze, const char *name) {
  if (!freeze || !*freeze) return false;
  for (const char *glob = freeze;; glob = end_of(glob) + 1) {
    if (glob_matches(glob, end_of(glob), name)) return true;
    if (!*end_of(glob)) return false;
  }
}

uint64_t sn_freeze_trained(const char *freeze, const sn_net *net) {
  uint64_t trained = 0;
  if (!freeze || !*freeze) return net->parameters;
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (sn_freeze_trains(freeze, &net->layers[i])) trained += net->layers[i].parameters;
  return trained;
}

sn_status sn_freeze_check_text(const char *freeze, sn_err *err) {
  uint32_t point;
  if (strlen(freeze) > SN_FREEZE_TEXT)
    return sn_fail(err, SN_BAD_USAGE, "--freeze: more than %d bytes in all; join names by a *, such as 'layer*'",
                   SN_FREEZE_TEXT);
  for (const char *glob = freeze;; glob = end_of(glob) + 1) {
    if (glob == end_of(glob))
      return sn_fail(err, SN_BAD_USAGE, "--freeze: a name is empty; give names of layers, such as 'layer*'");
    if (!*end_of(glob)) break;
  }
  for (size_t bytes; *freeze; freeze += bytes)
    if ((bytes = sn_utf8_next(freeze, &point)) == 0 || sn_utf8_is_control(point))
      return sn_fail(err, SN_BAD_USAGE, "--freeze: a character that is no part of a name; write ? in its place");
  return SN_OK;
}

/* Names, and what stands ahead of their first dot, which is what models call a group of layers. */
static uint32_t list_names(const sn_net *net, const char **names, sn_arena *arena) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < net->n_layers; i++) {
    const char *name = net->layers[i].name;
    char *group = net->layers[i].parameters > 0 ? sn_arena_text(arena, name) : NULL;
    if (!group) continue;
    group[strcspn(group, ".")] = '\0';
    names[count++] = group;
    names[count++] = name;
  }
  return count;
}

/* Wildcards are nothing that a near name could be found by. */
static sn_status fail_unmatched(const char *glob, size_t length, const sn_net *net, sn_err *err) {
  char text[SN_FREEZE_TEXT + 1], hint[200] = "";
  size_t kept = 0;
  sn_arena *arena = sn_arena_new();
  const char **names = arena ? sn_arena_alloc(arena, (size_t)net->n_layers * 2, sizeof *names) : NULL;
  for (size_t i = 0; i < length && i < SN_FREEZE_TEXT; i++)
    if (glob[i] != '*' && glob[i] != '?') text[kept++] = glob[i];
  text[kept] = '\0';
  if (names) sn_text_suggest(text, names, list_names(net, names, arena), hint, sizeof hint);
  sn_arena_free(arena);
  return sn_fail(err, SN_BAD_USAGE,
                 "--freeze: no layer of %.80s with parameters is called \"%.*s\"%s; snsim show-net lists them",
                 net->name, length < 80 ? (int)length : 80, glob, hint);
}

static bool is_used(const char *glob, const char *end, const sn_net *net) {
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (net->layers[i].parameters > 0 && glob_matches(glob, end, net->layers[i].name)) return true;
  return false;
}

sn_status sn_freeze_check(const char *freeze, const sn_net *net, sn_err *err) {
  if (!freeze || !*freeze) return SN_OK;
  for (const char *glob = freeze;; glob = end_of(glob) + 1) {
    if (!is_used(glob, end_of(glob), net)) return fail_unmatched(glob, (size_t)(end_of(glob) - glob), net, err);
    if (!*end_of(glob)) break;
  }
  if (sn_freeze_trained(freeze, net) > 0) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "--freeze: all parameters of %.80s are frozen, so nothing is trained; freeze fewer, or ask with "
                 "--inference",
                 net->name);
}
