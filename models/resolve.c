/* Names of networks as people write them; see the header. One pass over the zoo's table. */
#include "models/resolve.h"

#include "base/checked.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

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

sn_status sn_net_resolve(const char *spec, sn_net_origin origin, char *text, sn_err *err) {
  char name[LONGEST];
  const char *at = take_prefix(spec, &origin);
  size_t length = strcspn(at, ":+");
  snprintf(name, sizeof name, "%.*s", (int)sn_min(length, LONGEST), at);
  const sn_zoo_entry *entry = length < LONGEST && !sn_net_is_file(spec) ? find_of(name, origin, at != spec) : NULL;
  if (!entry && at != spec)
    return sn_fail(err, SN_BAD_USAGE, "no network is called \"%.80s\"; snsim list nets shows those there are", spec);
  if (!entry) at = spec, length = 0;
  if (snprintf(text, SN_NET_SPEC, "%s%s", entry ? entry->name : "", at + length) < SN_NET_SPEC) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "--net: a name has fewer than %d bytes", SN_NET_SPEC);
}

bool sn_net_is_known(const char *spec) {
  char name[LONGEST];
  sn_net_origin origin = SN_NETS_OF_PAPERS;
  const char *at = take_prefix(spec, &origin);
  size_t length = strcspn(at, ":+");
  if (sn_net_is_file(spec)) return !sn_net_foreign(spec);
  snprintf(name, sizeof name, "%.*s", (int)sn_min(length, LONGEST), at);
  return length < LONGEST && find_of(name, origin, false);
}

const char *sn_net_foreign(const char *name) {
  static const char program[] =
      "a program is not run; write its model as ONNX, torch.onnx.export(net.train(), inputs, \"mine.onnx\", "
      "dynamo=True, optimize=False), and give --net mine.onnx (docs/networks.md)";
  static const char weights[] =
      "a file of weights does not say what is computed with them; write the model as ONNX, "
      "torch.onnx.export(net.train(), inputs, \"mine.onnx\", dynamo=True, optimize=False), and give --net mine.onnx "
      "(docs/networks.md)";
  static const struct {
    const char *end, *reason;
  } known[] = {{".py", program},   {".ipynb", program},       {".pt", weights},   {".pth", weights},
               {".ckpt", weights}, {".safetensors", weights}, {".bin", weights},  {".h5", weights},
               {".pb", weights},   {".keras", weights},       {".gguf", weights}, {".tflite", weights}};
  size_t length = strlen(name);
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    size_t end = strlen(known[i].end);
    if (length > end && sn_text_same(name + length - end, known[i].end)) return known[i].reason;
  }
  return NULL;
}
