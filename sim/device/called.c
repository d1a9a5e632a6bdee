/* Names of GPUs as people and drivers write them; see sn_device_called() in sim/device/device.h. A name is reduced to
 * its letters and digits, without what says who made the chip, how it is mounted or that a number is of GiB; what is
 * left is the name of a profile, reduced likewise, or stands in the table of other names. */
#include "sim/device/device.h"

#include "base/text.h"
#include "sim/device/embedded.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 63 };

/* Letters in lower case and digits alone. */
static void reduce(const char *text, char *out) {
  size_t used = 0;
  for (; *text && used < LONGEST; text++)
    if (isalnum((unsigned char)*text)) out[used++] = (char)tolower((unsigned char)*text);
  out[used] = '\0';
}

static void drop(char *text, const char *word) {
  char *at = strstr(text, word);
  if (at) memmove(at, at + strlen(word), strlen(at + strlen(word)) + 1);
}

static const char *find_profile(const char *reduced) {
  char own[LONGEST + 1];
  for (size_t i = 0; i < sn_embedded_device_count; i++) {
    reduce(sn_embedded_devices[i].name, own);
    if (strcmp(own, reduced) == 0) return sn_embedded_devices[i].name;
  }
  return NULL;
}

/* Of several cards of a name the one that is met most, and where it may be had for nothing. */
static const char *const others[][2] = {
    {"a100", "a100_80"},
    {"h100", "h100_sxm"},
    {"h10080gbhbm3", "h100_sxm"},
    {"h100sxm80gb", "h100_sxm"},
    {"h100sxm580gb", "h100_sxm"},
    {"h10080", "h100_sxm"},
    {"v100", "v100_16"},
    {"p100", "p100_16"},
    {"titanx", "titan_x_maxwell"},
    {"gtxtitanx", "titan_x_maxwell"},
    {"k40", "k40c"},
    {"gtx1060", "gtx1060_6"},
    {"rtx4060laptopgpu", "rtx4060_laptop"},
    {"laptop4060", "rtx4060_laptop"},
    {"orin", "orin_agx_64"},
    {"jetsonorin", "orin_agx_64"},
    {"agxorin", "orin_agx_64"},
    {"jetsonagxorin", "orin_agx_64"},
    {"jetsonagxorin64", "orin_agx_64"},
    {"orinnvgpu", "orin_agx_64"},
    {"colab", "t4"},
    {"kaggle", "p100_16"},
};

static const char *find_other(const char *reduced) {
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (strcmp(others[i][0], reduced) == 0) return others[i][1];
  return NULL;
}

static const char *find(const char *reduced) {
  const char *name = find_profile(reduced);
  return name ? name : find_other(reduced);
}

/* "4090" is the GeForce's number; NVIDIA calls the A6000 RTX A6000. */
static const char *find_series(const char *reduced) {
  static const char *const series[] = {"rtx", "gtx"};
  char longer[LONGEST + 4];
  const char *name = NULL;
  for (size_t i = 0; i < 2 && !name; i++) {
    snprintf(longer, sizeof longer, "%s%s", series[i], reduced);
    if (isdigit((unsigned char)*reduced)) name = find(longer);
    if (strncmp(reduced, "rtxa", 4) == 0) name = find(reduced + 3);
  }
  return name;
}

/* Letters and digits, without the maker. */
static void reduce_made(const char *text, char *out) {
  static const char *const makers[] = {"nvidia", "geforce", "tesla", "quadro", "amd", "instinct", "graphics"};
  reduce(text, out);
  for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) drop(out, makers[i]);
}

/* "rtx3090" of "rtx3090ti": the longest name that a text begins with; NULL: none. */
static const char *find_beginning(const char *typed, const char *const *names, size_t count) {
  const char *best = NULL;
  for (size_t i = 0; i < count; i++)
    if (strncmp(typed, names[i], strlen(names[i])) == 0 && (!best || strlen(names[i]) > strlen(best))) best = names[i];
  return best;
}

/* Of the other names those that people mistype: "h100". */
char *sn_device_suggest(const char *text, char *out, size_t room) {
  enum { MOST = 96, SHORT = 5 };
  const char *names[MOST];
  char reduced[LONGEST + 1], typed[LONGEST + 4];
  size_t count = 0;
  reduce_made(text, reduced);
  const char *series = *reduced == '1' ? "gtx" : isdigit((unsigned char)*reduced) ? "rtx" : "";
  snprintf(typed, sizeof typed, "%s%.60s", series, reduced);
  for (size_t i = 0; i < sn_embedded_device_count && count < MOST; i++) names[count++] = sn_embedded_devices[i].name;
  for (size_t i = 0; i < sizeof others / sizeof others[0] && count < MOST; i++)
    if (strlen(others[i][0]) <= SHORT) names[count++] = others[i][0];
  const char *beginning = find_beginning(typed, names, count);
  return sn_text_suggest(beginning ? beginning : typed, names, count, out, room);
}

const char *sn_device_called(const char *text) {
  static const char *const mounts[] = {"sxm2", "sxm3", "sxm4", "sxm5", "sxm", "pcie", "hbm3", "hbm2e"};
  char reduced[LONGEST + 1];
  reduce_made(text, reduced);
  const char *name = find(reduced);
  for (size_t i = 0; i < sizeof mounts / sizeof mounts[0] && !name; i++) drop(reduced, mounts[i]);
  size_t length = strlen(reduced);
  if (!name && length > 2 && strcmp(reduced + length - 2, "gb") == 0) reduced[length - 2] = '\0';
  if (!name) name = find(reduced);
  return name ? name : find_series(reduced);
}
