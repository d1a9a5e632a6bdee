/* What `snsim fit` and `snsim advise` print alike: where they plan, and what stands in the way of more. */
#ifndef SN_CLI_CAPACITY_CAPACITY_H
#define SN_CLI_CAPACITY_CAPACITY_H

#include "base/err.h"
#include "cli/frame/json.h"
#include "cli/frame/question.h"
#include "cli/options/out.h"
#include "sim/ask/simulate.h"

#include <stdint.h>
#include <stdio.h>

#define SN_MIB 1048576.0

/* "what net", the user's text made safe for a terminal; ", batch 32 of 224x224" or ", batch 4 of 1024 tokens",
 * with what is `each`'s behind it; "external memory host, allocator pool".
 */
void sn_capacity_print_net(const char *what, const char *net, const char *name, FILE *out);
void sn_capacity_print_batch(const sn_net *net, const char *each, FILE *out);
void sn_capacity_print_switches(const sn_question *question, FILE *out);

/* What a batch is made of: "images", "sequences". */
const char *sn_capacity_unit(const sn_question *q);

/* How far the times of the question's strategies are from what was measured, a line. */
void sn_capacity_print_times(const sn_question *q, FILE *out);

/* "context 460.80 MiB", and PyTorch's where one of its strategies is asked about. */
void sn_capacity_print_context(const sn_question *q, FILE *out);
/* ", on k40c: 11.17 GiB usable", a line about the margin where there is one, and the begin of one with the switches. */
void sn_capacity_print_where(const sn_question *question, FILE *out);
/* The same as members of an object: gpu, memory_bytes, margin_bytes, workspace, ... */
void sn_capacity_put_where(sn_json_object *object, const sn_question *question);

/* "pool5 backward", "pool5 backward (holes)", into `text`; returns it. */
char *sn_capacity_binding(const sn_binding *binding, char *text, size_t room);
/* The tensors on the device at the binding step, largest first, and what would take how much of them away. */
sn_status sn_capacity_print_tensors(const sn_binding *binding, const sn_out *out, sn_err *err);
/* binding_layer, binding_pass, binding_step, binding_cause, binding_tensor_bytes, resident_bytes; null where `binding`
 * is NULL. */
void sn_capacity_put_binding(sn_json_object *object, const sn_binding *binding);

/* Records SN_NO_FIT: no device would do, as the host has less than the strategy sends out. */
sn_status sn_capacity_fail_host(const sn_question *question, sn_strategy strategy, uint64_t host_bytes, sn_err *err);

#endif
