/* Globs over the names of layers; see the header. */
#include "models/net/globs.h"

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

bool sn_globs_match(const char *globs, const char *name) {
  if (!globs || !*globs) return false;
  for (const char *glob = globs;; glob = end_of(glob) + 1) {
    if (glob_matches(glob, end_of(glob), name)) return true;
    if (!*end_of(glob)) return false;
  }
}

sn_status sn_globs_check_text(const char *option, const char *globs, sn_err *err) {
  uint32_t point;
  if (strlen(globs) > SN_GLOBS_TEXT)
    return sn_fail(err, SN_BAD_USAGE, "%s: more than %d bytes in all; join names by a *, such as 'layer*'", option,
                   SN_GLOBS_TEXT);
  for (const char *glob = globs;; glob = end_of(glob) + 1) {
    if (glob == end_of(glob))
      return sn_fail(err, SN_BAD_USAGE, "%s: a name is empty; give names of layers, such as 'layer*'", option);
    if (!*end_of(glob)) break;
  }
  for (size_t bytes; *globs; globs += bytes)
    if ((bytes = sn_utf8_next(globs, &point)) == 0 || sn_utf8_is_control(point))
      return sn_fail(err, SN_BAD_USAGE, "%s: a character that is no part of a name; write ? in its place", option);
  return SN_OK;
}

/* What an option asks for. */
typedef struct wish {
  const char *option, *kind;
  const sn_net *net;
  bool (*counts)(const sn_layer *layer);
} wish;

/* Names, and what stands ahead of their first dot, which is what models call a group of layers. */
static uint32_t list_names(const wish *w, const char **names, sn_arena *arena) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < w->net->n_layers; i++) {
    const char *name = w->net->layers[i].name;
    char *group = w->counts(&w->net->layers[i]) ? sn_arena_text(arena, name) : NULL;
    if (!group) continue;
    group[strcspn(group, ".")] = '\0';
    names[count++] = group;
    names[count++] = name;
  }
  return count;
}

/* Wildcards are nothing that a near name could be found by. */
static sn_status fail_unmatched(const wish *w, const char *glob, size_t length, sn_err *err) {
  char text[SN_GLOBS_TEXT + 1], hint[200] = "";
  size_t kept = 0;
  sn_arena *arena = sn_arena_new();
  const char **names = arena ? sn_arena_alloc(arena, (size_t)w->net->n_layers * 2, sizeof *names) : NULL;
  for (size_t i = 0; i < length && i < SN_GLOBS_TEXT; i++)
    if (glob[i] != '*' && glob[i] != '?') text[kept++] = glob[i];
  text[kept] = '\0';
  if (names) sn_text_suggest(text, names, list_names(w, names, arena), hint, sizeof hint);
  sn_arena_free(arena);
  return sn_fail(err, SN_BAD_USAGE,
                 "%s: no %s of %.80s with parameters is called \"%.*s\"%s; snsim show-net lists them", w->option,
                 w->kind, w->net->name, length < 80 ? (int)length : 80, glob, hint);
}

static bool is_used(const wish *w, const char *glob, const char *end) {
  for (uint32_t i = 0; i < w->net->n_layers; i++)
    if (w->counts(&w->net->layers[i]) && glob_matches(glob, end, w->net->layers[i].name)) return true;
  return false;
}

sn_status sn_globs_check(const char *option, const char *globs, const sn_net *net, const char *kind,
                         bool (*counts)(const sn_layer *layer), sn_err *err) {
  const wish w = {option, kind, net, counts};
  if (!globs || !*globs) return SN_OK;
  for (const char *glob = globs;; glob = end_of(glob) + 1) {
    if (!is_used(&w, glob, end_of(glob))) return fail_unmatched(&w, glob, (size_t)(end_of(glob) - glob), err);
    if (!*end_of(glob)) return SN_OK;
  }
}
