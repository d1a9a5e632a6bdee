/* Mistakes of a network file as a list; see the header. */
#include "models/json/mistakes.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACE = 180 }; /* of a file's name in an error of base/json.c */

bool sn__mistakes_have(const sn__mistakes *m, const cJSON *item) {
  for (uint32_t i = 0; item && i < m->n_shown; i++)
    if (m->shown[i].item == item) return true;
  return false;
}

bool sn__mistakes_seen(const sn__mistakes *m) {
  return m->n_shown < SN__MISTAKES_SHOWN && !(m->again && m->count > 0);
}

void sn__mistakes_read(sn__mistakes *m, bool again) {
  m->again = again;
  sn_json_be_terse(m->doc, !sn__mistakes_seen(m));
}

bool sn__mistakes_go_on(const sn__mistakes *m) {
  return m->at.code == SN_OK && m->count < SN__MISTAKES_COUNTED;
}

/* "layer \"conv3\": ", or the number of one without a name; nothing where `what` names a layer itself. */
static void name_layer(const sn__mistakes *m, const char *what, char *out, size_t room) {
  char number[24] = "";
  out[0] = '\0';
  if (m->n == 0 || strncmp(what, "layer ", 6) == 0) return;
  if (!m->layer) snprintf(number, sizeof number, "%u", (unsigned)m->n);
  snprintf(out, room, "layer %s%.100s%s: ", m->layer ? "\"" : "", m->layer ? m->layer : number, m->layer ? "\"" : "");
  sn_utf8_clean(out);
}

/* "file:line: what" as "file:line: layer: what". */
static void keep(sn__mistakes *m, const cJSON *item) {
  sn__mistake *mistake = &m->shown[m->n_shown++];
  size_t length = strlen(m->file), place = length < PLACE ? length : PLACE;
  const char *text = m->at.text, *what = text + place + 1;
  char layer[140];
  *mistake = (sn__mistake){.item = item};
  if (*what != ' ') mistake->line = (unsigned)strtoul(what, NULL, 10);
  what += strcspn(what, " ");
  if (*what) what++;
  name_layer(m, what, layer, sizeof layer);
  snprintf(mistake->text, sizeof mistake->text, "%.*s%.139s%s", (int)(what - text), text, layer, what);
}

void sn__mistakes_note(sn__mistakes *m, const cJSON *item) {
  if (m->at.code != SN_BAD_INPUT) return;
  m->failed = true;
  m->at.code = SN_OK;
  if (m->again && m->count > 0) return;
  if (m->n_shown < SN__MISTAKES_SHOWN) keep(m, item);
  m->count++;
  sn__mistakes_read(m, m->again);
}

static void sort(sn__mistakes *m) {
  for (uint32_t i = 1; i < m->n_shown; i++) {
    sn__mistake moved = m->shown[i];
    uint32_t to = i;
    for (; to > 0 && m->shown[to - 1].line > moved.line; to--) m->shown[to] = m->shown[to - 1];
    m->shown[to] = moved;
  }
}

const char *sn__mistakes_print(sn__mistakes *m, char *out, size_t room) {
  enum { END = 40 }; /* "\n  and at least 4294967295 more" */
  const char *least = m->count < SN__MISTAKES_COUNTED ? "" : "at least ";
  uint32_t printed = 0;
  out[0] = '\0';
  sort(m);
  if (m->count == 1) snprintf(out, room, "%s", m->shown[0].text);
  if (m->count < 2) return out;
  size_t used = (size_t)snprintf(out, room, "%.*s: %s%u mistakes:", PLACE, m->file, least, (unsigned)m->count);
  for (; printed < m->n_shown; printed++) {
    const char *text = m->shown[printed].text;
    if (used + strlen(text) + 3 + END > room) break;
    used += (size_t)snprintf(out + used, room - used, "\n  %s", text);
  }
  if (printed < m->count && used < room)
    snprintf(out + used, room - used, "\n  and %s%u more", least, (unsigned)(m->count - printed));
  return out;
}
