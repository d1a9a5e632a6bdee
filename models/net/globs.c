/* Globs over the names of layers; see the header. */
#include "models/net/globs.h"

#include "base/arena.h"
#include "base/text.h"
#include "base/utf8.h"

#include <string.h>

/* Behind the class that `at`, a '[', begins; NULL: it has no end. A ']' that comes first is a member. */
static const char *class_end(const char *at, const char *end) {
  at++;
  if (at < end && (*at == '!' || *at == '^')) at++;
  if (at < end && *at == ']') at++;
  while (at < end && *at != ']') at++;
  return at < end ? at + 1 : NULL;
}

/* A member of a class: a character, or a range. Returns what is behind it. */
static const char *next_member(const char *at, const char *end, unsigned char *low, unsigned char *high) {
  *low = *high = (unsigned char)*at++;
  if (at + 1 >= end || *at != '-') return at;
  *high = (unsigned char)at[1];
  return at + 2;
}

/* `end` is behind the ']'. */
static bool class_has(const char *at, const char *end, char c) {
  unsigned char low, high, wanted = (unsigned char)c;
  bool negated = at[1] == '!' || at[1] == '^', found = false;
  for (const char *p = at + 1 + negated; p < end - 1;) {
    p = next_member(p, end - 1, &low, &high);
    found = found || (low <= wanted && wanted <= high);
  }
  return found != negated;
}

/* Whether what stands first in a glob is this character; *behind: what follows it. */
static bool is_first(const char *glob, const char *end, char c, const char **behind) {
  const char *close = *glob == '[' ? class_end(glob, end) : NULL;
  *behind = close ? close : glob + 1;
  return close ? class_has(glob, close, c) : *glob == '?' || *glob == c;
}

/* Only the last `*` is ever tried again, so that no pattern takes longer than its length times the name's; fnmatch(3)
 * promises no such bound. */
static bool glob_matches(const char *glob, const char *end, const char *name) {
  const char *star = NULL, *resume = NULL, *behind;
  size_t length = (size_t)(end - glob);
  if (strncmp(glob, name, length) == 0 && !name[length]) return true; /* a name may hold brackets */
  while (*name) {
    if (glob < end && *glob == '*') {
      star = glob++;
      resume = name;
    } else if (glob < end && is_first(glob, end, *name, &behind)) {
      glob = behind;
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

/* Every '[' begins a class that ends, of ranges that rise, of characters of one byte. */
static sn_status check_classes(const char *option, const char *glob, const char *end, sn_err *err) {
  unsigned char low, high;
  for (const char *at = glob; at < end; at++) {
    if (*at != '[') continue;
    const char *close = class_end(at, end);
    if (!close)
      return sn_fail(err, SN_BAD_USAGE,
                     "%s: the [ of \"%.*s\" has no ]; [0-3] and [!abc] are classes of characters, [[] is a bracket",
                     option, end - glob < 80 ? (int)(end - glob) : 80, glob);
    for (const char *p = at + 1 + (at[1] == '!' || at[1] == '^'); p < close - 1;) {
      p = next_member(p, close - 1, &low, &high);
      if (low > high || low >= 0x80 || high >= 0x80)
        return sn_fail(err, SN_BAD_USAGE,
                       "%s: \"%.*s\" is no class of characters; give single ones and ranges that rise, such as [0-3]",
                       option, close - at < 80 ? (int)(close - at) : 80, at);
    }
    at = close - 1;
  }
  return SN_OK;
}

sn_status sn_globs_check_text(const char *option, const char *globs, sn_err *err) {
  uint32_t point;
  size_t bytes;
  if (strlen(globs) > SN_GLOBS_TEXT)
    return sn_fail(err, SN_BAD_USAGE, "%s: more than %d bytes in all; join names by a *, such as 'layer*'", option,
                   SN_GLOBS_TEXT);
  for (const char *at = globs; *at; at += bytes)
    if ((bytes = sn_utf8_next(at, &point)) == 0 || sn_utf8_is_control(point))
      return sn_fail(err, SN_BAD_USAGE, "%s: a character that is no part of a name; write ? in its place", option);
  for (const char *glob = globs;; glob = end_of(glob) + 1) {
    if (glob == end_of(glob))
      return sn_fail(err, SN_BAD_USAGE, "%s: a name is empty; give names of layers, such as 'layer*'", option);
    if (check_classes(option, glob, end_of(glob), err) != SN_OK) return err->code;
    if (!*end_of(glob)) break;
  }
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
  for (size_t i = 0; i < length && i < SN_GLOBS_TEXT; i++) {
    const char *close = glob[i] == '[' ? class_end(&glob[i], &glob[length]) : NULL;
    if (!close && glob[i] != '*' && glob[i] != '?') text[kept++] = glob[i];
    if (close) i = (size_t)(close - glob) - 1;
  }
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
