/* Dialects: the explicit graph's steps as text, and for random networks in every dialect and order what every route
 * must be: each tensor is made once, before it is read; forward, then backward, then updates; permits join what is read
 * to what is made, of one size. Prints its seed; SN_SEED and SN_PROP_NETS choose others. */
#include "sim/ask/simulate.h"

#include "sim/graph/route.h"
#include "tests/support/pipeline.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A block with a shortcut: its input has two readers. */
static const char block[] = "{\"snsim_net\":1,\"name\":\"block\",\"input\":[2,4,4],\"layers\":["
                            "{\"name\":\"conv\",\"op\":\"CONV\",\"channels\":2,\"kernel\":3,\"pad\":1},"
                            "{\"name\":\"bn\",\"op\":\"BN\"},"
                            "{\"name\":\"relu\",\"op\":\"ACT\"},"
                            "{\"name\":\"drop\",\"op\":\"DROPOUT\",\"ratio\":0.5},"
                            "{\"name\":\"join\",\"op\":\"JOIN\",\"inputs\":[\"drop\",\"bn\"]},"
                            "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":3},"
                            "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";

/* "bn forward: conv.y:r bn.y:w bn.saved0:w bn.saved1:w"; permits as "from>to" behind them. */
static void print_step(const sn_route *r, uint32_t s, char *text, size_t room) {
  const sn_step *step = &r->steps[s];
  char name[SN_TENSOR_NAME];
  const char *flatten = step->kernel == SN_FLATTEN ? " flatten" : "";
  size_t used =
      (size_t)snprintf(text, room, "%s%s %s:", r->net->layers[step->layer].name, flatten, sn_pass_name(step->pass));
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = r->accesses[step->first_access + i];
    used += (size_t)snprintf(text + used, room - used, " %s:%c", sn_tensor_name(r, access.tensor, name, sizeof name),
                             "rwm"[access.mode]);
  }
  for (uint32_t i = 0; i < step->n_permits; i++) {
    sn_permit p = r->permits[step->first_permit + i];
    used += (size_t)snprintf(text + used, room - used, " %u>%u", p.from, p.to);
  }
}

static void explicit_steps(void **state) {
  (void)state;
  static const char *const steps[] = {
      "conv forward: conv.y:w",
      "bn forward: conv.y:r bn.y:w bn.saved0:w bn.saved1:w",
      "relu forward: bn.y:r relu.y:w 0>1",
      "drop forward: relu.y:r drop.y:w drop.saved:w 0>1",
      "join forward: drop.y:r bn.y:r join.y:w 0>2 1>2",
      "fc flatten forward: join.y:r fc.flat:w 0>1",
      "fc forward: fc.flat:r fc.y:w",
      "softmax forward: fc.y:r softmax.y:w 0>1",
      "softmax backward: softmax.y:r softmax.dx:w 0>1",
      "fc backward: softmax.dx:r fc.flat:r fc.dflat:w 1>2",
      "fc flatten backward: fc.dflat:r fc.dx:w 0>1",
      "join backward: fc.dx:r join.dx0:w join.dx1:w 0>1",
      "drop backward: join.dx0:r drop.saved:r drop.dx:w 0>2",
      "relu backward: drop.dx:r relu.y:r relu.dx:w 0>2",
      "bn/fork backward: join.dx1:r relu.dx:r bn/fork.dx:w 0>2",
      "bn backward: bn/fork.dx:r bn.saved0:r bn.saved1:r conv.y:r bn.dx:w",
      "conv backward: bn.dx:r",
      "conv update:",
      "bn update:",
      "fc update:",
  };
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(block, 2);
  sn_route *route = sn_route_new(net, SN_DIALECT_EXPLICIT, SN_ORDER_ROUTE, &err);
  must(&err);
  assert_int_equal(route->n_steps, sizeof steps / sizeof steps[0]);
  for (uint32_t s = 0; s < route->n_steps; s++) {
    char text[300];
    print_step(route, s, text, sizeof text);
    assert_string_equal(text, steps[s]);
  }
  sn_route_free(route);
  sn_net_free(net);
}

/* A block with a shortcut, as torchvision's are, whose output is concatenated: gradients of `relu` meet twice. */
static const char shared[] =
    "{\"snsim_net\":1,\"name\":\"shared\",\"input\":[2,4,4],\"layers\":["
    "{\"name\":\"conv\",\"op\":\"CONV\",\"channels\":2,\"kernel\":3,\"pad\":1},"
    "{\"name\":\"bn\",\"op\":\"BN\"},"
    "{\"name\":\"relu\",\"op\":\"ACT\"},"
    "{\"name\":\"conv2\",\"op\":\"CONV\",\"channels\":2,\"kernel\":3,\"pad\":1,\"bias\":false},"
    "{\"name\":\"join\",\"op\":\"JOIN\",\"inputs\":[\"conv2\",\"relu\"]},"
    "{\"name\":\"relu2\",\"op\":\"ACT\"},"
    "{\"name\":\"cat\",\"op\":\"CONCAT\",\"inputs\":[\"relu2\",\"relu\"]},"
    "{\"name\":\"pool\",\"op\":\"POOL\",\"kernel\":2,\"stride\":2},"
    "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":3},"
    "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";

/* What is in place stands under the name of what it took over. The first two gradients of `relu` that meet are a view
 * of the CONCAT's and relu2.dx, which the JOIN's other input still waits for, so their sum is a third tensor; with
 * conv2.dx it is changed in place. */
static void pytorch_steps(void **state) {
  (void)state;
  static const char *const steps[] = {
      "conv forward: conv.y:w",
      "bn forward: conv.y:r bn.y:w bn.saved0:w bn.saved1:w",
      "relu forward: bn.y:m",
      "conv2 forward: bn.y:r conv2.y:w",
      "join forward: conv2.y:m bn.y:r",
      "relu2 forward: conv2.y:m",
      "cat forward: conv2.y:r bn.y:r cat.y:w",
      "pool forward: cat.y:r pool.y:w pool.saved:w",
      "fc forward: pool.y:r fc.y:w",
      "softmax forward: fc.y:r softmax.y:w softmax.saved:w",
      "softmax backward: softmax.y:r softmax.scratch:w softmax.dx:w",
      "fc backward: softmax.dx:r pool.y:r fc.dx:w fc.dw:w fc.db:w",
      "pool backward: fc.dx:r cat.y:r pool.saved:r pool.dx:w",
      "relu2 backward: pool.dx:r conv2.y:r relu2.dx:w",
      "relu/fork backward: pool.dx:r relu2.dx:r relu/fork.dx:w",
      "conv2 backward: relu2.dx:r bn.y:r conv2.dx:w conv2.dw:w",
      "relu/fork backward: relu/fork.dx:m conv2.dx:r",
      "relu backward: relu/fork.dx:r bn.y:r relu.dx:w",
      "bn backward: relu.dx:r conv.y:r bn.saved0:r bn.saved1:r bn.dx:w bn.dw:w bn.db:w",
      "conv backward: bn.dx:r conv.dw:w conv.db:w",
      "conv update: conv.dw:r conv.db:r softmax.saved:r",
      "bn update: bn.dw:r bn.db:r",
      "conv2 update: conv2.dw:r",
      "fc update: fc.dw:r fc.db:r conv.dw:r conv.db:r bn.dw:r bn.db:r conv2.dw:r",
  };
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(shared, 2);
  sn_route *route = sn_route_new(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, &err);
  must(&err);
  assert_int_equal(route->n_steps, sizeof steps / sizeof steps[0]);
  for (uint32_t s = 0; s < route->n_steps; s++) {
    char text[300];
    print_step(route, s, text, sizeof text);
    assert_string_equal(text, steps[s]);
  }
  const uint32_t joined = route->net->inputs[route->layers[7].first_input];
  sn_part cat = route->part[joined];
  assert_int_equal(cat.of, joined);
  assert_int_equal(cat.channels, 4);
  sn_route_free(route);
  route = sn_route_new(net, SN_DIALECT_PYTORCH_1_7, SN_ORDER_ROUTE, &err);
  must(&err);
  char text[300];
  print_step(route, 16, text, sizeof text);
  assert_string_equal(text, "relu/fork backward: relu/fork.dx:r conv2.dx:r relu/fork.dx:w");
  sn_route_free(route);
  sn_net_free(net);
}

/* The gradient that comes through the CONCAT is a view, which is not added to, also where the channels of a batch of
 * one lie together: PyTorch 2.15 makes a third tensor. */
static void views_are_never_added_to(void **state) {
  (void)state;
  static const char skip[] = "{\"snsim_net\":1,\"name\":\"skip\",\"input\":[2,4,4],\"layers\":["
                             "{\"name\":\"conv\",\"op\":\"CONV\",\"channels\":2,\"kernel\":3,\"pad\":1},"
                             "{\"name\":\"down\",\"op\":\"CONV\",\"channels\":3,\"kernel\":3,\"pad\":1},"
                             "{\"name\":\"cat\",\"op\":\"CONCAT\",\"inputs\":[\"conv\",\"down\"]},"
                             "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":3},"
                             "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";
  for (uint32_t batch = 1; batch <= 2; batch++) {
    sn_err err = SN_ERR_INIT;
    char text[300];
    sn_net *net = load_net(skip, batch);
    sn_route *route = sn_route_new(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, &err);
    must(&err);
    uint32_t s = route->first_backward;
    while (s < route->first_update && route->steps[s].kernel != SN_SUM) s++;
    print_step(route, s, text, sizeof text);
    assert_string_equal(text, "conv/fork backward: fc.dx:r down.dx:r conv/fork.dx:w");
    sn_route_free(route);
    sn_net_free(net);
  }
}

/* A leaky ReLU behind a DECONV, which is in place where PyTorch's are; a tanh; one behind it, which cannot be; a
 * sigmoid that its author has in place. */
static const char acts[] = "{\"snsim_net\":1,\"name\":\"acts\",\"input\":[2,4,4],\"layers\":["
                           "{\"name\":\"up\",\"op\":\"DECONV\",\"channels\":2,\"kernel\":2,\"stride\":2},"
                           "{\"name\":\"leaky\",\"op\":\"ACT\",\"mode\":\"leaky\"},"
                           "{\"name\":\"tanh\",\"op\":\"ACT\",\"mode\":\"tanh\"},"
                           "{\"name\":\"apart\",\"op\":\"ACT\",\"mode\":\"leaky\",\"slope\":0.5},"
                           "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":3},"
                           "{\"name\":\"sigmoid\",\"op\":\"ACT\",\"mode\":\"sigmoid\",\"inplace\":true},"
                           "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";

static void activations_of_dialects(void **state) {
  (void)state;
  static const struct {
    sn_dialect_id dialect;
    const char *steps[5]; /* backward of sigmoid, apart, tanh, leaky, up */
  } cases[] = {
      {SN_DIALECT_SUPERNEURONS,
       {"sigmoid backward: fc.y:r sigmoid.y:r softmax.y:m", "apart backward: tanh.y:r apart.y:r fc.dx:m",
        "tanh backward: leaky.y:r tanh.y:r fc.dx:m", "leaky backward: up.y:r leaky.y:r fc.dx:m",
        "up backward: fc.dx:r up.dx:w"}},
      {SN_DIALECT_EXPLICIT,
       {"sigmoid backward: softmax.dx:r sigmoid.y:r sigmoid.dx:w 0>2",
        "apart backward: fc.dx:r apart.y:r apart.dx:w 0>2", "tanh backward: apart.dx:r tanh.y:r tanh.dx:w 0>2",
        "leaky backward: tanh.dx:r leaky.y:r leaky.dx:w 0>2", "up backward: leaky.dx:r"}},
      {SN_DIALECT_PYTORCH,
       {"sigmoid backward: softmax.dx:r fc.y:r sigmoid.dx:w", "apart backward: fc.dx:r tanh.y:r apart.dx:w",
        "tanh backward: apart.dx:r tanh.y:r tanh.dx:w", "leaky backward: tanh.dx:r up.y:r leaky.dx:w",
        "up backward: leaky.dx:r up.dw:w up.db:w"}},
      {SN_DIALECT_PYTORCH_1_7,
       {"sigmoid backward: softmax.dx:r fc.y:r sigmoid.dx:w", "apart backward: fc.dx:r tanh.y:r apart.dx:w",
        "tanh backward: apart.dx:r tanh.y:r tanh.dx:w", "leaky backward: tanh.dx:r up.y:r leaky.dx:w",
        "up backward: leaky.dx:r up.dw:w up.db:w"}},
      {SN_DIALECT_SINGA,
       {"sigmoid backward: softmax.dx:r sigmoid.y:r sigmoid.dx:w", "apart backward: fc.dx:r tanh.y:r apart.dx:w",
        "tanh backward: apart.dx:r tanh.y:r tanh.dx:w", "leaky backward: tanh.dx:r up.y:r leaky.dx:w",
        "up backward: leaky.dx:r up.dw:w"}},
  };
  static const char *const layers[] = {"sigmoid", "apart", "tanh", "leaky", "up"};
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(acts, 2);
  for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
    sn_route *route = sn_route_new(net, cases[n].dialect, SN_ORDER_ROUTE, &err);
    must(&err);
    for (int i = 0; i < 5; i++) {
      char text[300];
      uint32_t layer = 1;
      while (strcmp(net->layers[layer].name, layers[i]) != 0) layer++;
      print_step(route, route->backward_step[layer], text, sizeof text);
      assert_string_equal(text, cases[n].steps[i]);
    }
    sn_route_free(route);
  }
  sn_net_free(net);
}

static void in_place_has_one_order(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("lenet", 1);
  assert_null(sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_POST, &err));
  assert_int_equal(err.code, SN_BAD_USAGE);
  err = (sn_err)SN_ERR_INIT;
  assert_null(sn_route_new(net, SN_DIALECT_PYTORCH, SN_ORDER_POST, &err));
  assert_int_equal(err.code, SN_BAD_USAGE);
  sn_net_free(net);
}

static void names(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_dialect_id id;
#define NAME(id, name) name,
  static const char *const listed[] = {SN_DIALECT_LIST(NAME)};
#undef NAME
  for (sn_dialect_id d = 0; d < SN_DIALECTS; d++) {
    assert_string_equal(sn_dialect_of(d)->name, listed[d]);
    assert_int_equal(sn_dialect_parse(sn_dialect_of(d)->name, &id, &err), SN_OK);
    assert_int_equal(id, d);
  }
  assert_int_equal(sn_dialect_parse("caffe", &id, &err), SN_BAD_USAGE);
  assert_string_equal(err.text, "--dialect: \"caffe\" is none of: superneurons, explicit, pytorch, pytorch-1.7, singa");
}

/* ---- random networks ---- */

static void check_access(const sn_route *r, uint32_t s, sn_access access, bool *made) {
  char name[SN_TENSOR_NAME];
  if (made[access.tensor] == (access.mode == SN_WRITE))
    fail_msg("step %u: %s is %s", s + 1, sn_tensor_name(r, access.tensor, name, sizeof name),
             made[access.tensor] ? "made again" : "read before it is made");
  made[access.tensor] = true;
}

static void check_permit(const sn_route *r, const sn_step *step, sn_permit p) {
  assert_true(p.from < step->n_accesses && p.to < step->n_accesses);
  sn_access from = r->accesses[step->first_access + p.from], to = r->accesses[step->first_access + p.to];
  assert_true(from.mode == SN_READ && to.mode == SN_WRITE);
  assert_int_equal(r->tensors[from.tensor].bytes, r->tensors[to.tensor].bytes);
}

/* Where steps are kernels, updates stand among those of backward. */
static sn_pass pass_of(const sn_route *r, uint32_t s) {
  if (r->dialect->by_kernel) return r->steps[s].pass;
  return s < r->first_backward ? SN_FORWARD : s < r->first_update ? SN_BACKWARD : SN_UPDATE;
}

/* The same bytes in another shape, and nothing else. */
static void check_flatten(const sn_route *r, const sn_step *step) {
  assert_int_equal(r->net->layers[step->layer].op, SN_FC);
  assert_int_equal(step->n_accesses, 1 + step->n_permits); /* one tensor once the permit is used */
}

static void check_route(const sn_route *r) {
  bool *made = calloc((size_t)r->n_tensors + 1, sizeof *made);
  uint64_t bytes = 0;
  assert_non_null(made);
  for (uint32_t s = 0; s < r->n_steps; s++) {
    const sn_step *step = &r->steps[s];
    assert_int_equal(step->pass, pass_of(r, s));
    bool own = step->kernel == SN_WHOLE || step->kernel == SN_FILTER_GRADIENT;
    if (step->pass == SN_FORWARD && own) assert_int_equal(r->forward_step[step->layer], s);
    if (step->pass == SN_BACKWARD && own) assert_int_equal(r->backward_step[step->layer], s);
    if (step->kernel == SN_FLATTEN) check_flatten(r, step);
    for (uint32_t i = 0; i < step->n_accesses; i++) check_access(r, s, r->accesses[step->first_access + i], made);
    for (uint32_t i = 0; i < step->n_permits; i++) check_permit(r, step, r->permits[step->first_permit + i]);
  }
  for (uint32_t t = 0; t < r->n_tensors; t++) {
    assert_true(made[t]);
    bytes += r->tensors[t].bytes;
  }
  assert_int_equal(bytes, r->tensor_bytes);
  free(made);
}

static uint32_t flattens(const sn_route *r, uint32_t layer) {
  const sn_layer *l = &r->net->layers[layer];
  return r->dialect->flattens && l->op == SN_FC && r->output[r->net->inputs[l->first_input]] != SN_NONE;
}

/* One that adds the bias. */
static uint32_t adds_row(const sn_route *r, uint32_t layer) {
  const sn_layer *l = &r->net->layers[layer];
  return r->dialect->by_kernel && l->op == SN_FC && l->attr->bias;
}

/* A step for every layer, but for DATA and FORKs that do not copy; those have one that sums. And one ahead of each FC
 * that does not read the batch itself. Declared: backward only where a gradient is made. */
static void check_steps(const sn_route *r) {
  uint32_t forward = 0;
  for (uint32_t i = 1; i < r->net->n_layers; i++) {
    bool transparent = r->net->layers[i].op == SN_FORK && !r->dialect->fork_copies;
    assert_int_equal(r->forward_step[i] == SN_NONE, transparent);
    if (!transparent && !r->dialect->declared) assert_int_not_equal(r->backward_step[i], SN_NONE);
    forward += !transparent + flattens(r, i) + adds_row(r, i);
  }
  for (uint32_t s = 0; s < r->n_steps; s++) forward -= r->steps[s].pass == SN_FORWARD;
  assert_int_equal(forward, 0);
}

/* ---- taking over ---- */

/* The largest sum of tensors between their first and last access. */
static uint64_t load_of(const sn_route *r) {
  uint32_t *first = calloc(r->n_tensors, sizeof *first), *last = calloc(r->n_tensors, sizeof *last);
  uint64_t load = 0, most = 0;
  assert_true(first && last);
  for (uint32_t t = 0; t < r->n_tensors; t++) first[t] = SN_NONE;
  for (uint32_t s = 0; s < r->n_steps; s++)
    for (uint32_t i = 0; i < r->steps[s].n_accesses; i++) {
      uint32_t t = r->accesses[r->steps[s].first_access + i].tensor;
      if (first[t] == SN_NONE) first[t] = s;
      last[t] = s;
    }
  for (uint32_t s = 0; s < r->n_steps; s++) {
    for (uint32_t t = 0; t < r->n_tensors; t++) load += first[t] == s ? r->tensors[t].bytes : 0;
    if (load > most) most = load;
    for (uint32_t t = 0; t < r->n_tensors; t++) load -= last[t] == s ? r->tensors[t].bytes : 0;
  }
  free(first);
  free(last);
  return most;
}

/* Where the tensor of a whole route lies in the one with taken bytes: both keep the same lists of values. */
static uint32_t *find_homes(const sn_route *whole, const sn_route *taken) {
  uint32_t *home = calloc(whole->n_tensors, sizeof *home);
  assert_non_null(home);
  for (uint32_t v = 0; v < whole->net->n_values; v++) {
    if (whole->output[v] != SN_NONE) home[whole->output[v]] = taken->output[v];
    if (whole->gradient[v] != SN_NONE) home[whole->gradient[v]] = taken->gradient[v];
  }
  for (uint32_t i = 0; i < whole->net->n_layers; i++) {
    const sn_layer *layer = &whole->net->layers[i];
    uint32_t saved = sn_saving_count(sn_dialect_rule(whole->dialect, whole->net, layer)->saves);
    for (uint32_t n = 0; n < saved; n++) home[whole->saved[i] + n] = taken->saved[i] + n;
  }
  /* flat inputs and their gradients lie where the others do */
  for (uint32_t s = 0; s < whole->n_steps; s++)
    if (whole->steps[s].kernel == SN_FLATTEN) {
      const sn_access *a = &whole->accesses[whole->steps[s].first_access];
      uint32_t own =
          whole->tensors[a[0].tensor].port == SN_FLAT && whole->tensors[a[0].tensor].layer == whole->steps[s].layer;
      home[a[own ? 0 : 1].tensor] = home[a[own ? 1 : 0].tensor];
    }
  return home;
}

/* Runs the steps with the bytes where they lie: everything that is read is still there. A flattened value is the same
 * one. */
static void check_contents(const sn_route *whole, const uint32_t *home, uint32_t n_homes) {
  uint32_t *content = calloc((size_t)n_homes + 1, sizeof *content);
  uint32_t *value = calloc((size_t)whole->n_tensors + 1, sizeof *value);
  assert_true(content && value);
  for (uint32_t s = 0; s < whole->n_steps; s++) {
    const sn_step *step = &whole->steps[s];
    const sn_access *accesses = &whole->accesses[step->first_access];
    for (uint32_t i = 0; i < step->n_accesses; i++)
      if (accesses[i].mode != SN_WRITE) assert_int_equal(content[home[accesses[i].tensor]], value[accesses[i].tensor]);
    for (uint32_t i = 0; i < step->n_accesses; i++) {
      if (accesses[i].mode != SN_WRITE) continue;
      uint32_t made = accesses[i].tensor;
      value[made] = step->kernel == SN_FLATTEN ? value[accesses[0].tensor] : made + 1;
      content[home[made]] = value[made];
    }
  }
  free(content);
  free(value);
}

static void taking_over_loses_nothing(void **state) {
  (void)state;
  uint64_t seed = first_seed(20261123);
  uint32_t nets = case_count(300);
  uint64_t before = 0, after = 0;
  for (uint32_t n = 0; n < nets; n++, seed++) {
    sn_err err = SN_ERR_INIT;
    uint64_t dice = seed;
    sn_net *net = random_net_new(&dice, &err);
    for (sn_order o = SN_ORDER_ROUTE; o <= SN_ORDER_POST; o++) {
      sn_route *whole = sn_route_new(net, SN_DIALECT_EXPLICIT, o, &err);
      sn_route *taken = sn_route_new(net, SN_DIALECT_EXPLICIT, o, &err);
      must(&err);
      assert_int_equal(sn_route_take(taken, &err), SN_OK);
      check_route(taken);
      uint32_t *home = find_homes(whole, taken);
      check_contents(whole, home, taken->n_tensors);
      uint64_t load = load_of(whole), less = load_of(taken);
      if (less > load) fail_msg("SN_SEED=%" PRIu64 ": %" PRIu64 " bytes, more than %" PRIu64, seed, less, load);
      before += load, after += less;
      free(home);
      sn_route_free(whole);
      sn_route_free(taken);
    }
    sn_net_free(net);
  }
  printf("taken over: %.3f of the load\n", (double)after / (double)before);
  assert_true(after < before);
}

/* Kept for nobody: PyTorch makes indices of a POOL, and what an LRN is made of, all the same. */
static bool is_made_anyway(const sn_route *runs, uint32_t t) {
  sn_op op = runs->net->layers[runs->tensors[t].layer].op;
  return runs->dialect->eager && runs->tensors[t].role == SN_SAVED && (op == SN_POOL || op == SN_LRN);
}

/* What runs the network alone is the forward steps of what trains it, and outputs; PyTorch's dropout does nothing. */
static void check_inference(const sn_route *trains, sn_dialect_id dialect, sn_order order) {
  sn_err err = SN_ERR_INIT;
  sn_route *runs = sn_route_new_for(trains->net, dialect, order, (sn_iteration){.inference = true}, NULL, &err);
  must(&err);
  check_route(runs);
  uint32_t expected = 0;
  assert_int_equal(runs->first_backward, runs->n_steps);
  assert_int_equal(runs->first_update, runs->n_steps);
  for (uint32_t s = 0; s < trains->first_backward; s++) {
    uint32_t layer = trains->steps[s].layer;
    if (runs->dialect->eager && runs->net->layers[layer].op == SN_DROPOUT) continue;
    assert_true(expected < runs->n_steps);
    assert_int_equal(runs->steps[expected++].layer, layer);
  }
  assert_int_equal(runs->n_steps, expected);
  for (uint32_t t = 0; t < runs->n_tensors; t++)
    assert_true(runs->tensors[t].role == SN_VALUE || is_made_anyway(runs, t));
  for (uint32_t i = 0; i < runs->net->n_layers; i++) assert_int_equal(runs->backward_step[i], SN_NONE);
  sn_route_free(runs);
}

static void random_routes(void **state) {
  (void)state;
  uint64_t seed = first_seed(20261122);
  uint32_t nets = case_count(500);
  for (uint32_t n = 0; n < nets; n++, seed++) {
    sn_err err = SN_ERR_INIT;
    uint64_t dice = seed;
    sn_net *net = random_net_new(&dice, &err);
    must(&err);
    for (sn_dialect_id d = 0; d < SN_DIALECTS; d++)
      for (sn_order o = 0; o < SN_ORDERS; o++) {
        if (!sn_dialect_has_order(d, o)) continue;
        sn_iteration iteration = {.precision = n % 2 && d != SN_DIALECT_SINGA ? SN_BF16 : SN_FP32};
        sn_route *route = sn_route_new_for(net, d, o, iteration, NULL, &err);
        if (!route) fail_msg("SN_SEED=%" PRIu64 ": %s", seed, err.text);
        check_route(route);
        check_steps(route);
        if (o != SN_ORDER_BFS) check_inference(route, d, o);
        sn_route_free(route);
      }
    sn_net_free(net);
  }
}

/* Asked whether it fits, about where it does, the planner says what the plan does, though not always with one. */
static void expect_foreseen(sn_planner *planner, sn_strategy strategy, uint64_t enough, uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  for (uint64_t part = 1; part <= 8; part++) {
    sn_need need, sooner;
    char name[SN_STRATEGY_TEXT];
    sn_planner_need(planner, strategy, enough / 8 * part, &need, &err);
    sn_planner_fits(planner, strategy, enough / 8 * part, &sooner, &err);
    if (err.code != SN_OK || sooner.fits != need.fits || sooner.slack_bytes != need.slack_bytes)
      fail_msg("SN_SEED=%" PRIu64 " %s, %" PRIu64 " eighths: %s", seed, sn_strategy_name(strategy, name), part,
               err.text);
  }
}

/* Plans of every framework are proved when they are made, with hardly any memory and with all there is. */
static void plan_all(const sn_net *net, const sn_device *device, uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  sn_options options = SN_OPTIONS_INIT;
  if (seed % 2) options.iteration.precision = SN_BF16;
  sn_planner *planner = sn_planner_new(net, device, &options, &err);
  must(&err);
  for (uint32_t i = 0; i < SN_STRATEGY_FRAMEWORKS; i++) {
    sn_need little, much;
    char name[SN_STRATEGY_TEXT];
    sn_strategy strategy = sn_strategy_framework(i);
    if (sn_strategy_refuses(strategy, options.iteration)) continue;
    sn_planner_need(planner, strategy, UINT64_C(1) << 20, &little, &err);
    sn_planner_need(planner, strategy, SN_MEMORY_ALL, &much, &err);
    if (err.code != SN_OK) fail_msg("SN_SEED=%" PRIu64 " %s: %s", seed, sn_strategy_name(strategy, name), err.text);
    assert_true(much.fits && !little.fits);
    expect_foreseen(planner, strategy, much.device_bytes, seed);
  }
  sn_planner_free(planner);
}

static void plans_of_frameworks(void **state) {
  (void)state;
  uint64_t seed = first_seed(20261124);
  uint32_t nets = case_count(300);
  sn_err err = SN_ERR_INIT;
  sn_device device;
  sn_device_load("k40c", &device, &err);
  must(&err);
  for (uint32_t n = 0; n < nets; n++, seed++) {
    uint64_t dice = seed;
    sn_net *net = random_net_new(&dice, &err);
    must(&err);
    plan_all(net, &device, seed);
    sn_net_free(net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(explicit_steps),
      cmocka_unit_test(pytorch_steps),
      cmocka_unit_test(views_are_never_added_to),
      cmocka_unit_test(activations_of_dialects),
      cmocka_unit_test(taking_over_loses_nothing),
      cmocka_unit_test(in_place_has_one_order),
      cmocka_unit_test(names),
      cmocka_unit_test(random_routes),
      cmocka_unit_test(plans_of_frameworks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
