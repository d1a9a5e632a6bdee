/* Modules and calls, against the names that model.named_modules() has in torchvision and transformers, recorded in
 * tests/data/modules: one line a module, indented by one blank a level, "0..11" for twelve alike. */
#include "models/net/modules.h"
#include "sim/capacity/calls.h"
#include "tests/support/pipeline.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINES = 4000, NAME = 64 };

typedef struct line {
  unsigned depth;
  char name[NAME];
} line;

typedef struct tree {
  line lines[LINES];
  unsigned count;
} tree;

static const char *const recorded[] = {"tv_alexnet",
                                       "tv_vgg16",
                                       "tv_vgg19",
                                       "tv_resnet18",
                                       "tv_resnet50",
                                       "tv_inception_v3",
                                       "tv_densenet121",
                                       "tv_r3d_18",
                                       "tv_mobilenet_v2",
                                       "tv_squeezenet1_1",
                                       "tv_mc3_18",
                                       "tv_r2plus1d_18",
                                       "vit_b_16",
                                       "vit_l_16",
                                       "resnext50_32x4d",
                                       "mobilenet_v3_small",
                                       "mobilenet_v3_large",
                                       "efficientnet_b0",
                                       "efficientnet_b4",
                                       "convnext_tiny",
                                       "convnext_base",
                                       "swin_t",
                                       "swin_b",
                                       "gpt2",
                                       "gpt2_medium",
                                       "bert_base",
                                       "bert_large",
                                       "t5_base",
                                       "llama",
                                       "mistral",
                                       "qwen2.5",
                                       "phi3",
                                       "gemma2",
                                       "mixtral"};
enum { RECORDED = sizeof recorded / sizeof recorded[0] };

static void read_tree(const char *net, tree *t) {
  char path[512], text[256];
  snprintf(path, sizeof path, "%s/tests/data/modules/%s.txt", SNSIM_SOURCE_DIR, net);
  FILE *in = fopen(path, "r");
  if (!in) fail_msg("%s: cannot be read", path);
  for (t->count = 0; fgets(text, sizeof text, in); t->count++) {
    assert_true(t->count < LINES);
    line *l = &t->lines[t->count];
    l->depth = (unsigned)strspn(text, " ");
    snprintf(l->name, sizeof l->name, "%.*s", (int)strcspn(text + l->depth, "\n"), text + l->depth);
  }
  fclose(in);
}

static bool is_named(const char *name, const char *part, size_t length) {
  const char *dots = strstr(name, "..");
  if (!dots) return strlen(name) == length && strncmp(name, part, length) == 0;
  if (strspn(part, "0123456789") < length) return false;
  long number = strtol(part, NULL, 10);
  return number >= strtol(name, NULL, 10) && number <= strtol(dots + 2, NULL, 10);
}

/* How many parts of a path are modules, from its front. */
static unsigned depth_of(const tree *t, const char *path) {
  unsigned depth = 0;
  for (unsigned i = 0; i < t->count && *path; i++) {
    if (t->lines[i].depth < depth) break;
    size_t length = strcspn(path, ".");
    if (t->lines[i].depth != depth || !is_named(t->lines[i].name, path, length)) continue;
    depth++;
    path += length + (path[length] == '.');
  }
  return depth;
}

static unsigned parts_of(const char *path) {
  unsigned parts = 1;
  for (; *path; path++) parts += *path == '.';
  return parts;
}

/* A parameter that is no module's alone, or a module under another name than its layer has. */
static bool is_bare_parameter(const char *path) {
  static const char *const bare[] = {"class_token", "pos_embedding", "in_proj", ".scale", "sdpa", ".experts."};
  for (size_t i = 0; i < sizeof bare / sizeof bare[0]; i++)
    if (strstr(path, bare[i])) return true;
  return false;
}

static void layers_are_modules(void **state) {
  tree *t = *state;
  for (unsigned n = 0; n < RECORDED; n++) {
    sn_net *net = load_net(recorded[n], 1);
    read_tree(recorded[n], t);
    assert_int_not_equal(sn_module_library(net), SN_LIBRARY_NONE);
    for (uint32_t i = 0; i < net->n_layers; i++) {
      const sn_layer *l = &net->layers[i];
      const sn_named_module *m = &net->modules[i];
      if (l->parameters > 0 && !is_bare_parameter(m->path) && depth_of(t, m->path) != parts_of(m->path))
        fail_msg("%s: %s (%s) is no module", recorded[n], m->path, l->name);
      if (m->block && depth_of(t, m->block) != parts_of(m->block))
        fail_msg("%s: block %s of %s is no module", recorded[n], m->block, l->name);
    }
    sn_net_free(net);
  }
}

/* "model.layer2[3]" to "layer2.3"; a slice ends it. Returns what follows. */
static const char *read_python(const char *at, char *path) {
  char *to = path;
  for (at += strlen("model"); *at == '.' || (*at == '[' && isdigit((unsigned char)at[1]));) {
    const char *name = at + 1;
    size_t length = strcspn(name, ".[](),: \n");
    bool index = *at == '[';
    if (index && name[length] != ']') break;
    if (name[length] == '(') break; /* a method */
    if (to > path) *to++ = '.';
    memcpy(to, name, length);
    to += length;
    at = name + length + index;
  }
  *to = '\0';
  return at;
}

static void check_line(const tree *t, const char *net, const char *text) {
  char path[512];
  for (const char *at = text; (at = strstr(at, "model"));) {
    at = read_python(at, path);
    if (*path && depth_of(t, path) != parts_of(path)) fail_msg("%s: %s in \"%s\" is no module", net, path, text);
  }
}

static sn_calls *ask(const char *spec, uint32_t batch, const sn_calls_wish *wish, sn_iteration iteration) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(spec, batch);
  sn_device gpu = load_gpu("h200");
  sn_options options = SN_OPTIONS_INIT;
  options.iteration = iteration;
  const sn_asked asked = {.spec = spec, .net = net, .device = &gpu, .options = &options};
  sn_calls *calls = sn_calls_of(&asked, wish, &err);
  must(&err);
  sn_net_free(net);
  return calls;
}

static void calls_name_modules(void **state) {
  tree *t = *state;
  for (unsigned n = 0; n < RECORDED; n++) {
    read_tree(recorded[n], t);
    const sn_calls_wish wish = {.strategy = parse_strategy("pytorch+recompute=units"), .memory_bytes = SIZE_MAX / 2};
    sn_calls *calls = ask(recorded[n], 2, &wish, (sn_iteration){0});
    for (uint32_t i = 0; i < calls->count; i++) {
      check_line(t, recorded[n], calls->lines[i]);
      if (calls->lines[i][0] != '#') assert_true(strlen(calls->lines[i]) <= 80);
    }
    assert_true(calls->count > 0 && calls->chosen == calls->units);
    sn_calls_free(calls);
  }
}

static void check_lines(const char *spec, uint32_t batch, const sn_calls_wish *wish, sn_iteration iteration,
                        const char *const *lines, uint32_t count) {
  sn_calls *calls = ask(spec, batch, wish, iteration);
  for (uint32_t i = 0; i < count && i < calls->count; i++) assert_string_equal(calls->lines[i], lines[i]);
  assert_int_equal(calls->count, count);
  sn_calls_free(calls);
}

#define CHECK(spec, batch, wish, iteration, ...)                                                                       \
  do {                                                                                                                 \
    const char *const lines_[] = {__VA_ARGS__};                                                                        \
    check_lines(spec, batch, wish, iteration, lines_, sizeof lines_ / sizeof lines_[0]);                               \
  } while (0)

static void lines(void **state) {
  (void)state;
  static const char chain[] =
      "{\"snsim_net\": 1, \"name\": \"chain\", \"input\": [64, 1, 1], \"layers\": ["
      "{\"name\": \"a\", \"op\": \"FC\", \"channels\": 64}, {\"name\": \"b\", \"op\": \"FC\", \"channels\": 64},"
      "{\"name\": \"c\", \"op\": \"FC\", \"channels\": 64}, {\"name\": \"d\", \"op\": \"FC\", \"channels\": 64},"
      "{\"name\": \"loss\", \"op\": \"SOFTMAX\"}]}";
  sn_calls_wish wish = {.strategy = parse_strategy("pytorch+recompute=units"), .memory_bytes = SIZE_MAX / 2};
  sn_iteration iteration = {.precision = SN_AMP_BF16, .optimizer = SN_OPTIMIZER_ADAMW8BIT};
  CHECK("gpt2", 1, &wish, iteration, "model.gradient_checkpointing_enable({\"use_reentrant\": False})");
  CHECK(chain, 1, &wish, iteration, "x = torch.utils.checkpoint.checkpoint_sequential(",
        "    net, 2, x, use_reentrant=False)",
        "# net: nn.Sequential of all layers, each with what changes its output in place");
  CHECK("vit_b_16", 1, &wish, iteration, "from functools import partial; from torch.utils.checkpoint import checkpoint",
        "for block in model.encoder.layers:",
        "    block.forward = partial(checkpoint, block.forward, use_reentrant=False)");
  sn_calls *dense = ask("tv_densenet121", 2, &wish, (sn_iteration){0});
  assert_string_equal(dense->lines[5], "    again = partial(checkpoint, block.forward, use_reentrant=False)");
  assert_string_equal(dense->lines[6], "    block.forward = lambda inputs, again=again: again([*inputs])");
  sn_calls_free(dense);
  wish = (sn_calls_wish){.strategy = parse_strategy("pytorch"), .parts = 2};
  CHECK("vit_b_16", 4, &wish, iteration, "for x, y in parts: (loss(model(x), y) / 2).backward()");
  wish = (sn_calls_wish){.strategy = parse_strategy("pytorch"), .precision = true, .optimizer = true};
  CHECK("vit_b_16", 1, &wish, iteration, "optimizer = bitsandbytes.optim.AdamW8bit(model.parameters())",
        "with torch.autocast(\"cuda\", dtype=torch.bfloat16):", "    l = loss(model(x), y)", "l.backward()");
  const sn_iteration named = {.optimizer = SN_OPTIMIZER_ADAM_LOOP}, own = {.optimizer = SN_OPTIMIZER_ADAMW};
  CHECK("vit_b_16", 1, &wish, named, "optimizer = torch.optim.Adam(model.parameters(), foreach=False)");
  CHECK("gpt2", 1, &wish, own, "optimizer = torch.optim.AdamW(model.parameters(), fused=True)");
  CHECK("vit_b_16", 1, &wish, own, "optimizer = torch.optim.AdamW(model.parameters())");
  wish = (sn_calls_wish){.strategy = parse_strategy("pytorch+offload"), .parts = 3};
  CHECK("vit_b_16", 3, &wish, iteration, "for x, y in parts:",
        "    with torch.autograd.graph.save_on_cpu(pin_memory=True):", "        l = loss(model(x), y) / 3",
        "    l.backward()");
}

/* With a little less than everything takes, some blocks are enough, and fewer with more memory. */
static void some_blocks(void **state) {
  (void)state;
  sn_calls_wish wish = {.strategy = parse_strategy("pytorch+recompute=optimal")};
  uint32_t before = SN_NONE, first = 0;
  for (uint64_t gib = 3; gib <= 6; gib++) {
    wish.memory_bytes = gib << 30;
    sn_calls *calls = ask("tv_resnet50", 64, &wish, (sn_iteration){0});
    if (before == SN_NONE) first = calls->chosen;
    assert_true(calls->chosen <= before);
    before = calls->chosen;
    sn_calls_free(calls);
  }
  assert_true(first > before);
}

int main(void) {
  tree *t = malloc(sizeof *t);
  assert(t);
  const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(layers_are_modules, t),
                                     cmocka_unit_test_prestate(calls_name_modules, t), cmocka_unit_test(lines),
                                     cmocka_unit_test(some_blocks)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  free(t);
  return failed;
}
