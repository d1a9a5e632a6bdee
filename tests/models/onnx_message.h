/* Messages of ONNX's format, written field by field, and what becomes of them. */
#ifndef SN_TESTS_ONNX_MESSAGE_H
#define SN_TESTS_ONNX_MESSAGE_H

#include "models/zoo/zoo.h"
#include "models/zoo/zoo_internal.h"
#include "tests/support/named_layer.h"

#include <stdio.h>
#include <stdlib.h>

static inline void assert_shape(const sn_layer *layer, uint32_t n, uint32_t c, uint32_t h, uint32_t w) {
  sn_shape s = layer->out;
  if (s.n != n || s.c != c || s.h != h || s.w != w)
    fail_msg("%s is %ux%ux%ux%u, not %ux%ux%ux%u", layer->name, s.n, s.c, s.h, s.w, n, c, h, w);
}

/* In memory of just that size, so that a sanitizer sees what is read behind it. */
static inline sn_net *import(const void *bytes, size_t size, sn_err *err) {
  void *copy = malloc(size + (size == 0));
  assert_non_null(copy);
  memcpy(copy, bytes, size);
  sn_net *net = sn__net_from_onnx("t.onnx", copy, size, SN_LOSS_CROSS_ENTROPY, 2, 0, err);
  free(copy);
  return net;
}

typedef struct message {
  uint8_t bytes[4096];
  size_t size;
} message;

static inline void put_varint(message *m, uint64_t value) {
  for (; value >= 0x80; value >>= 7) m->bytes[m->size++] = (uint8_t)(value | 0x80);
  m->bytes[m->size++] = (uint8_t)value;
}

static inline void put_number(message *m, uint32_t field, uint64_t value) {
  put_varint(m, (uint64_t)field << 3);
  put_varint(m, value);
}

static inline void put_bytes(message *m, uint32_t field, const void *bytes, size_t size) {
  put_varint(m, (uint64_t)field << 3 | 2);
  put_varint(m, size);
  assert_true(m->size + size <= sizeof m->bytes);
  memcpy(m->bytes + m->size, bytes, size);
  m->size += size;
}

static inline void put_text(message *m, uint32_t field, const char *text) {
  put_bytes(m, field, text, strlen(text));
}

static inline void put_message(message *m, uint32_t field, const message *inner) {
  put_bytes(m, field, inner->bytes, inner->size);
}

/* Of 1 x 3 x 8 x 8. */
static inline void put_input(message *graph, const char *name) {
  static const uint64_t sides[] = {1, 3, 8, 8};
  message shape = {.size = 0}, tensor = {.size = 0}, type = {.size = 0}, input = {.size = 0};
  for (int i = 0; i < 4; i++) {
    message dim = {.size = 0};
    put_number(&dim, 1, sides[i]);
    put_message(&shape, 1, &dim);
  }
  put_number(&tensor, 1, 1);
  put_message(&tensor, 2, &shape);
  put_message(&type, 1, &tensor);
  put_text(&input, 1, name);
  put_message(&input, 2, &type);
  put_message(graph, 11, &input);
}

static inline void put_node(message *graph, const char *op, const char *name, const char *in, const char *out) {
  message node = {.size = 0};
  put_text(&node, 1, in);
  put_text(&node, 2, out);
  put_text(&node, 3, name);
  put_text(&node, 4, op);
  put_message(graph, 1, &node);
}

static inline void refuses(const message *graph, uint64_t opset, const char *text) {
  message model = {.size = 0}, version = {.size = 0};
  sn_err err = SN_ERR_INIT;
  put_number(&version, 2, opset);
  put_message(&model, 8, &version);
  put_message(&model, 7, graph);
  sn_net *net = import(model.bytes, model.size, &err);
  if (net || err.code != SN_BAD_INPUT || !strstr(err.text, text)) fail_msg("\"%s\" is not in \"%s\"", text, err.text);
}

static inline void put_ints(message *node, const char *name, int64_t value) {
  message attribute = {.size = 0};
  put_text(&attribute, 1, name);
  put_number(&attribute, 8, (uint64_t)value);
  put_number(&attribute, 20, 7);
  put_message(node, 5, &attribute);
}

static inline void put_pair(message *graph, const char *op, const char *name, const char *const in[2],
                            const char *out) {
  message node = {.size = 0};
  put_text(&node, 1, in[0]);
  put_text(&node, 1, in[1]);
  put_text(&node, 2, out);
  put_text(&node, 3, name);
  put_text(&node, 4, op);
  put_message(graph, 1, &node);
}

static inline void put_output(message *graph, const char *name) {
  message output = {.size = 0};
  put_text(&output, 1, name);
  put_message(graph, 12, &output);
}

static inline void put_elsewhere(message *graph, const char *name, uint64_t type, const uint64_t *dims, uint32_t rank) {
  message tensor = {.size = 0}, entry = {.size = 0};
  for (uint32_t i = 0; i < rank; i++) put_number(&tensor, 1, dims[i]);
  put_number(&tensor, 2, type);
  put_text(&tensor, 8, name);
  put_text(&entry, 1, "location");
  put_text(&entry, 2, "nowhere.bin");
  put_message(&tensor, 13, &entry);
  put_number(&tensor, 14, 1);
  put_message(graph, 5, &tensor);
}

#endif
