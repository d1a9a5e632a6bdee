/* Names of networks as people write them; see the header. A few passes over the zoo's table. */
#include "models/zoo/resolve.h"

#include "base/checked.h"
#include "base/text.h"
#include "models/zoo/zoo_internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { LONGEST = 64 };
static const char torchvision[] = "tv_";

/* The entry called `name` behind `prefix`, or NULL. */
static const sn_zoo_entry *find(const char *prefix, const char *name) {
  char full[2 * LONGEST];
  uint32_t count;
  const sn_zoo_entry *entries = sn_zoo_entries(&count);
  snprintf(full, sizeof full, "%s%s", prefix, name);
  for (uint32_t i = 0; i < count; i++)
    if (sn_text_same(entries[i].name, full)) return &entries[i];
  return NULL;
}

/* What "paper:" or "tv:" in front of a name says of its origin; it is stepped over. */
static const char *take_prefix(const char *spec, sn_net_origin *origin) {
  static const struct {
    const char *text;
    sn_net_origin origin;
  } known[] = {
      {"paper:", SN_NETS_OF_PAPERS}, {"tv:", SN_NETS_OF_TORCHVISION}, {"torchvision:", SN_NETS_OF_TORCHVISION}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (strncmp(spec, known[i].text, strlen(known[i].text)) == 0) {
      *origin = known[i].origin;
      return spec + strlen(known[i].text);
    }
  return spec;
}

static bool is_torchvision(const sn_zoo_entry *entry) {
  return strncmp(entry->name, torchvision, strlen(torchvision)) == 0;
}

/* A name that only one origin has is that one's, unless it is `forced` to be the other's. */
static const sn_zoo_entry *find_of(const char *name, sn_net_origin origin, bool forced) {
  const sn_zoo_entry *own = find("", name), *other = find(torchvision, name);
  if (!other && own && is_torchvision(own)) other = own, own = NULL;
  const sn_zoo_entry *wanted = origin == SN_NETS_OF_TORCHVISION ? other : own;
  return wanted || forced ? wanted : own ? own : other;
}

/* Families of the zoo with sizes, by all their names. */
static const struct {
  const char *name, *entry;
} families[] = {{"llama", "llama"},     {"llama2", "llama"},    {"llama3", "llama3"},   {"llama3.1", "llama3"},
                {"llama3.2", "llama3"}, {"llama3.3", "llama3"}, {"mistral", "mistral"}, {"qwen2.5", "qwen2.5"},
                {"phi3", "phi3"},       {"phi3.5", "phi3"},     {"gemma2", "gemma2"},   {"mixtral", "mixtral"}};

/* "llama3.1:8b", "Llama-3.1-8B": the entry and its size; the entry alone where none is named. */
static const sn_zoo_entry *find_size(const char *name, const char **size) {
  char text[LONGEST + 1];
  *size = NULL;
  for (size_t f = 0; f < sizeof families / sizeof families[0]; f++) {
    const sn_zoo_entry *entry = find("", families[f].entry);
    const sn__decoder *decoder = entry->config;
    if (sn_text_same(families[f].name, name)) return entry;
    for (uint32_t i = 0; i < decoder->n_sizes; i++)
      for (int colon = 0; colon < 2; colon++) {
        snprintf(text, sizeof text, "%s%s%s", families[f].name, colon ? ":" : "", decoder->sizes[i].name);
        if (!sn_text_same(text, name)) continue;
        *size = decoder->sizes[i].name;
        return entry;
      }
  }
  return NULL;
}

/* Of what a name stands for on Hugging Face's hub, what says nothing of the network: "-Instruct", "-hf". */
static void drop_endings(char *name) {
  static const char *const endings[] = {"instruct", "chat", "hf",      "it",    "4k",
                                        "v0.1",     "v0.3", "uncased", "cased", "128k"};
  for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
    size_t length = strlen(name), end = strlen(endings[i]);
    if (length <= end + 1 || name[length - end - 1] != '-' || strcasecmp(name + length - end, endings[i]) != 0)
      continue;
    name[length - end - 1] = '\0';
    i = (size_t)-1; /* what stood before it may be another */
  }
}

/* "meta-llama/Meta-Llama-3-8B-Instruct" as "Llama-3-8B"; false where `spec` is no such name, or a file of yours. */
static bool take_hub(const char *spec, char name[LONGEST]) {
  const char *slash = strchr(spec, '/'), *prefix = "meta-";
  size_t length = strcspn(spec, ":+");
  bool onnx = sn_net_is_onnx(spec), json = length > 5 && strncmp(spec + length - 5, ".json", 5) == 0;
  if (!slash || strchr(slash + 1, '/') || strchr("./~", *spec) || onnx || json || access(spec, F_OK) == 0) return false;
  const char *at = slash + 1;
  if (strncasecmp(at, prefix, strlen(prefix)) == 0) at += strlen(prefix);
  snprintf(name, LONGEST, "%.*s", (int)sn_min((size_t)(spec + sn_max(length, (size_t)(at - spec)) - at), LONGEST), at);
  drop_endings(name);
  return true;
}

/* Names whose endings say something of the network: of its vocabulary. Mistral's 0.1 has the shapes of 0.2. */
static const char *stands_for(const char *spec, char text[SN_NET_SPEC]) {
  static const char *const known[][2] = {{"bert-base-cased", "bert_base:vocabulary=28996"},
                                         {"bert-large-cased", "bert_large:vocabulary=28996"},
                                         {"mistral-7b-v0.1", "mistral:7b-v0.2"},
                                         {"mistral-7b-instruct-v0.1", "mistral:7b-v0.2"},
                                         {"mistral-7b-instruct-v0.2", "mistral:7b-v0.2"}};
  char name[LONGEST], hub[LONGEST];
  size_t length = strcspn(spec, "+");
  if (!take_hub(spec, hub) && strchr(spec, '/')) return spec;
  const char *slash = memchr(spec, '/', length), *at = slash ? slash + 1 : spec;
  snprintf(name, sizeof name, "%.*s", (int)sn_min((size_t)(spec + length - at), LONGEST - 1), at);
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (sn_text_same(known[i][0], name) &&
        snprintf(text, SN_NET_SPEC, "%s%s", known[i][1], spec + length) < SN_NET_SPEC)
      return text;
  return spec;
}

/* What a spec is, beside what stands behind `rest`. */
typedef struct meant {
  const sn_zoo_entry *entry; /* NULL: nothing known */
  const char *size;          /* of a family; NULL: none */
  const char *rest;
} meant;

/* Of "name:size,key=..", "name:key=..", "name+lora=..". */
static meant understand(const char *spec, sn_net_origin origin, bool forced) {
  char name[LONGEST], whole[2 * LONGEST];
  size_t length = strcspn(spec, ":+"), all = length + strcspn(spec + length, ",+");
  meant m = {.rest = spec};
  if (strchr(spec, '/') ? !take_hub(spec, name) : sn_net_is_file(spec)) return m;
  if (!strchr(spec, '/')) snprintf(name, sizeof name, "%.*s", (int)sn_min(length, LONGEST), spec);
  snprintf(whole, sizeof whole, "%s%.*s", name, (int)sn_min(all - length, LONGEST), spec + length);
  m.entry = find_size(whole, &m.size);
  char *colon = strchr(whole, ':');
  if (colon) *colon = '-'; /* "gpt2:medium", as "llama:7b", where it is a network of its own: gpt2_medium */
  if (!m.entry && colon && strlen(whole) < LONGEST) m.entry = find_of(whole, origin, forced);
  if (m.entry) m.rest = spec + all;
  if (!m.entry && length < LONGEST) {
    for (int bare = 0; bare < 2 && !m.entry; bare++) {
      if (bare) drop_endings(name);
      m.entry = find_size(name, &m.size);
      if (!m.entry) m.entry = find_of(name, origin, forced);
    }
    if (m.entry) m.rest = spec + length;
  }
  return m;
}

sn_status sn_net_resolve(const char *asked, sn_net_origin origin, char *text, sn_err *err) {
  char other[SN_NET_SPEC];
  const char *spec = stands_for(asked, other);
  const char *at = take_prefix(spec, &origin);
  meant m = understand(at, origin, at != spec);
  if (!m.entry && at != spec)
    return sn_fail(err, SN_BAD_USAGE, "no network is called \"%.80s\"; snsim list nets shows those there are", spec);
  const char *name = m.entry ? m.entry->name : "", *rest = m.entry ? m.rest : spec;
  if (snprintf(text, SN_NET_SPEC, "%s%s%s%s", name, m.size ? ":" : "", m.size ? m.size : "", rest) < SN_NET_SPEC)
    return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "--net: a name has fewer than %d bytes", SN_NET_SPEC);
}

bool sn_net_is_known(const char *asked) {
  char other[SN_NET_SPEC];
  const char *spec = stands_for(asked, other);
  sn_net_origin origin = SN_NETS_OF_PAPERS;
  meant m = understand(take_prefix(spec, &origin), origin, false);
  return m.entry || (sn_net_is_file(spec) && !sn_net_foreign(spec));
}

#define RECORDED         "snsim.record(model, inputs, path=\"mine.rec\"), and give --net mine.rec (docs/record.md)"
#define RECORDED_BY_NAME "and give --net FILE.py:NAME --input 3,224,224: it is recorded in your Python (docs/record.md)"

const char *sn_net_foreign(const char *name) {
  static const char program[] = "a program may have many models; name one " RECORDED_BY_NAME;
  static const char notebook[] = "a notebook is not run; record its model in it, " RECORDED;
  static const char weights[] =
      "weights do not say what is computed with them; record the model that has them, " RECORDED;
  static const struct {
    const char *end, *reason;
  } known[] = {{".py", program},   {".ipynb", notebook},      {".pt", weights},   {".pth", weights},
               {".ckpt", weights}, {".safetensors", weights}, {".bin", weights},  {".h5", weights},
               {".pb", weights},   {".keras", weights},       {".gguf", weights}, {".tflite", weights}};
  size_t length = strlen(name);
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    size_t end = strlen(known[i].end);
    if (length > end && sn_text_same(name + length - end, known[i].end)) return known[i].reason;
  }
  char model[LONGEST];
  return take_hub(name, model)
             ? "there is no such file, nor a model of Hugging Face that is known by this name; snsim list nets shows "
               "what is known, any other is recorded: snsim record --config config.json --sequence 128 -o mine.rec, or "
               "snsim.record() in Python (docs/record.md)"
             : NULL;
}
