/* DTR program; see the header. Arrays that double, and two tables from storages to what touches them. */
#include "sim/dtr/dtr_program.h"

#include "base/checked.h"

#include <stdbool.h>
#include <stdlib.h>

sn_dtr_program *sn_dtr_program_new(sn_err *err) {
  sn_dtr_program *p = calloc(1, sizeof *p);
  if (!p) sn_fail_memory(err);
  return p;
}

void sn_dtr_program_free(sn_dtr_program *p) {
  if (!p) return;
  free(p->ops);
  free(p->args);
  free(p->tensors);
  free(p->storages);
  free(p->actions);
  free(p->first_member);
  free(p->members);
  free(p->first_user);
  free(p->users);
  free(p->references);
  free(p);
}

/* Makes room for `more` items of `size` bytes behind `count`, and one. */
static bool grow(void **items, uint32_t *room, uint32_t count, uint32_t more, size_t size) {
  uint64_t needed = (uint64_t)count + more + 1;
  if (needed <= *room) return true;
  uint64_t wanted = sn_max(needed, sn_max(64, 2 * (uint64_t)*room));
  if (wanted > UINT32_MAX) return false;
  void *larger = realloc(*items, (size_t)wanted * size);
  if (!larger) return false;
  *items = larger;
  *room = (uint32_t)wanted;
  return true;
}

static sn_status make_room(sn_dtr_program *p, uint32_t n_args, uint32_t n_outputs, sn_err *err) {
  if (p->n_ops >= SN_DTR_MOST_ITEMS || (uint64_t)p->n_args + n_args > SN_DTR_MOST_ITEMS ||
      (uint64_t)p->n_tensors + n_outputs > SN_DTR_MOST_ITEMS)
    return sn_fail(err, SN_BAD_INPUT, "more than %d operations, arguments or tensors", SN_DTR_MOST_ITEMS);
  bool good = grow((void **)&p->ops, &p->room_ops, p->n_ops, 1, sizeof *p->ops) &&
              grow((void **)&p->args, &p->room_args, p->n_args, n_args, sizeof *p->args) &&
              grow((void **)&p->tensors, &p->room_tensors, p->n_tensors, n_outputs, sizeof *p->tensors) &&
              grow((void **)&p->storages, &p->room_storages, p->n_storages, n_outputs, sizeof *p->storages) &&
              grow((void **)&p->references, &p->room_references, p->n_storages, n_outputs, sizeof *p->references);
  return good ? SN_OK : sn_fail_memory(err);
}

static sn_status add_action(sn_dtr_program *p, sn_dtr_kind kind, uint32_t item, sn_err *err) {
  if (p->n_actions == UINT32_MAX - 1 ||
      !grow((void **)&p->actions, &p->room_actions, p->n_actions, 1, sizeof *p->actions))
    return sn_fail_memory(err);
  p->actions[p->n_actions++] = (sn_dtr_action){.kind = kind, .item = item & (SN_DTR_MOST_ITEMS * 2u - 1)};
  return SN_OK;
}

static sn_status check_sums(const sn_dtr_program *p, uint64_t cost_ns, const sn_dtr_output *outputs, uint32_t n_outputs,
                            sn_err *err) {
  uint64_t costs, bytes = p->bytes;
  bool good = sn_mul(cost_ns, n_outputs, &costs) && sn_add(costs, p->most_costs, &costs) && costs < SN_DTR_MOST;
  if (!good) return sn_fail(err, SN_BAD_INPUT, "all times together pass 2^61 ns");
  for (uint32_t i = 0; i < n_outputs && good; i++)
    good = outputs[i].view_of != SN_DTR_OWN || (sn_add(bytes, outputs[i].bytes, &bytes) && bytes < SN_DTR_MOST);
  return good ? SN_OK : sn_fail(err, SN_BAD_INPUT, "all storages together pass 2^61 bytes");
}

static sn_status check_run(const sn_dtr_program *p, uint64_t cost_ns, const uint32_t *args, uint32_t n_args,
                           const sn_dtr_output *outputs, uint32_t n_outputs, sn_err *err) {
  if (n_outputs == 0) return sn_fail(err, SN_BAD_INPUT, "an operation without results");
  for (uint32_t i = 0; i < n_args; i++)
    if (args[i] >= p->n_tensors) return sn_fail(err, SN_BAD_INPUT, "argument %u is no tensor yet", i);
  for (uint32_t i = 0; i < n_outputs; i++)
    if (outputs[i].view_of != SN_DTR_OWN && outputs[i].view_of >= n_args)
      return sn_fail(err, SN_BAD_INPUT, "result %u is a view of argument %u, of %u", i, outputs[i].view_of, n_args);
  return check_sums(p, cost_ns, outputs, n_outputs, err);
}

/* The tensor's storage, a new one where it has one of its own; one reference more. */
static uint32_t storage_of(sn_dtr_program *p, const sn_dtr_output *output, const uint32_t *args) {
  uint32_t s = p->n_storages;
  if (output->view_of != SN_DTR_OWN) {
    s = p->tensors[args[output->view_of]].storage;
    p->references[s]++;
    return s;
  }
  p->storages[s] = (sn_dtr_storage){.bytes = output->bytes, .root = p->n_tensors};
  p->references[s] = 1;
  p->bytes += output->bytes;
  p->ops[p->n_ops].bytes += output->bytes;
  p->n_storages++;
  return s;
}

sn_status sn_dtr_program_run(sn_dtr_program *p, uint64_t cost_ns, const uint32_t *args, uint32_t n_args,
                             const sn_dtr_output *outputs, uint32_t n_outputs, sn_err *err) {
  if (check_run(p, cost_ns, args, n_args, outputs, n_outputs, err) != SN_OK ||
      make_room(p, n_args, n_outputs, err) != SN_OK || add_action(p, SN_DTR_RUN, p->n_ops, err) != SN_OK)
    return err->code;
  p->ops[p->n_ops] = (sn_dtr_op){.cost_ns = cost_ns, .first_arg = p->n_args, .first_tensor = p->n_tensors};
  for (uint32_t i = 0; i < n_args; i++) p->args[p->n_args + i] = args[i];
  for (uint32_t i = 0; i < n_outputs; i++) {
    uint32_t storage = storage_of(p, &outputs[i], args);
    p->tensors[p->n_tensors++] = (sn_dtr_tensor){.op = p->n_ops, .storage = storage};
  }
  p->n_args += n_args;
  p->cost_ns += cost_ns;
  p->most_costs += cost_ns * n_outputs;
  p->n_ops++;
  return SN_OK;
}

sn_status sn_dtr_program_act(sn_dtr_program *p, sn_dtr_kind kind, uint32_t tensor, sn_err *err) {
  uint32_t *references = &p->references[p->tensors[tensor].storage];
  bool counts = kind == SN_DTR_HOLD || kind == SN_DTR_RELEASE;
  if (counts && *references == 0)
    return sn_fail(err, SN_BAD_INPUT, "nothing refers to its bytes any more, so that it cannot be %s",
                   kind == SN_DTR_HOLD ? "copied" : "released");
  if (add_action(p, kind, tensor, err) != SN_OK) return err->code;
  if (kind == SN_DTR_HOLD) ++*references;
  if (kind == SN_DTR_RELEASE) --*references;
  return SN_OK;
}

/* ---- closing ---- */

static uint32_t *new_counts(size_t count) {
  return calloc(count + 1, sizeof(uint32_t));
}

/* Calls for each different storage among the arguments of an operation: counts[storage]++, or where `users` is given
 * puts the operation there. `seen` holds the last operation + 1 of each storage. */
static void each_use(const sn_dtr_program *p, uint32_t *counts, uint32_t *users, uint32_t *seen) {
  for (uint32_t o = 0; o < p->n_ops; o++)
    for (uint32_t a = p->ops[o].first_arg; a < p->ops[o + 1].first_arg; a++) {
      uint32_t s = p->tensors[p->args[a]].storage;
      if (seen[s] == o + 1) continue;
      seen[s] = o + 1;
      if (users)
        users[counts[s]++] = o;
      else
        counts[s]++;
    }
}

/* Counts become where each one's part begins; returns the sum. */
static uint32_t to_firsts(uint32_t *counts, uint32_t n) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i <= n; i++) {
    uint32_t count = counts[i];
    counts[i] = sum;
    sum += count;
  }
  return sum;
}

/* What filling has moved on goes back. */
static void to_begin(uint32_t *firsts, uint32_t n) {
  for (uint32_t i = n; i > 0; i--) firsts[i] = firsts[i - 1];
  firsts[0] = 0;
}

static void find_members(sn_dtr_program *p) {
  for (uint32_t t = 0; t < p->n_tensors; t++) p->first_member[p->tensors[t].storage]++;
  to_firsts(p->first_member, p->n_storages);
  for (uint32_t t = 0; t < p->n_tensors; t++) p->members[p->first_member[p->tensors[t].storage]++] = t;
  to_begin(p->first_member, p->n_storages);
}

static sn_status find_users(sn_dtr_program *p, uint32_t *seen, sn_err *err) {
  each_use(p, p->first_user, NULL, seen);
  p->users = malloc(((size_t)to_firsts(p->first_user, p->n_storages) + 1) * sizeof *p->users);
  if (!p->users) return sn_fail_memory(err);
  for (uint32_t s = 0; s < p->n_storages; s++) seen[s] = 0;
  each_use(p, p->first_user, p->users, seen);
  to_begin(p->first_user, p->n_storages);
  return SN_OK;
}

sn_status sn_dtr_program_close(sn_dtr_program *p, sn_err *err) {
  uint32_t *seen = new_counts(p->n_storages);
  p->first_member = new_counts(p->n_storages);
  p->members = new_counts(p->n_tensors);
  p->first_user = new_counts(p->n_storages);
  bool good = seen && p->first_member && p->members && p->first_user;
  if (make_room(p, 0, 0, err) == SN_OK && !good) sn_fail_memory(err);
  if (good && err->code == SN_OK) {
    p->ops[p->n_ops] = (sn_dtr_op){.first_arg = p->n_args, .first_tensor = p->n_tensors};
    find_members(p);
    find_users(p, seen, err);
  }
  free(seen);
  free(p->references);
  p->references = NULL;
  return err->code;
}
