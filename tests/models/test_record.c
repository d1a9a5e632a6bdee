/* Recordings as files: peaks counted event by event against those that the recorder's own replay and PyTorch's tracker
 * have (tests/record/data/expected.csv), other batches, and what is wrong with damaged files. */
#include "base/arena.h"
#include "models/record/record_net.h"
#include "models/zoo/zoo.h"
#include "tests/support/pipeline.h"
#include "tests/support/record_peak.h"

#include <stdio.h>
#include <string.h>

#define DATA SNSIM_SOURCE_DIR "/tests/record/data/"

typedef struct expected {
  char file[64];
  unsigned batch;
  unsigned long apart, in_place;
} expected;

static bool next_row(FILE *in, expected *e) {
  char line[256];
  if (!fgets(line, sizeof line, in)) return false;
  assert_int_equal(sscanf(line, "%63[^,],%u,%lu,%lu", e->file, &e->batch, &e->apart, &e->in_place), 4);
  return true;
}

static uint64_t peak_of(const sn_net *net, bool in_place) {
  return record_peak(net->recorded->record, net->batch, in_place);
}

static void peaks_are_those_of_the_recorder(void **state) {
  (void)state;
  FILE *in = fopen(DATA "expected.csv", "r");
  char head[256], path[256];
  expected e;
  unsigned rows = 0;
  assert_non_null(in);
  assert_non_null(fgets(head, sizeof head, in));
  for (; next_row(in, &e); rows++) {
    snprintf(path, sizeof path, DATA "%s", e.file);
    sn_net *net = load_net(path, e.batch);
    assert_int_equal(peak_of(net, false), e.apart);
    assert_int_equal(peak_of(net, true), e.in_place);
    sn_net_free(net);
  }
  fclose(in);
  assert_true(rows >= 20);
}

static void another_batch_is_what_reading_anew_gives(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *first = load_net(DATA "transformer.rec.gz", 2), *anew = load_net(DATA "transformer.rec.gz", 16);
  sn_net *turned = sn_net_rebatch(first, 16, &err);
  must(&err);
  assert_int_equal(turned->batch, 16);
  assert_true(turned->macs == anew->macs && turned->data_bytes == anew->data_bytes);
  assert_int_equal(turned->parameters, anew->parameters);
  assert_int_equal(turned->n_layers, anew->n_layers);
  for (uint32_t i = 0; i < anew->n_layers; i++) {
    assert_string_equal(turned->layers[i].name, anew->layers[i].name);
    assert_true(turned->layers[i].macs == anew->layers[i].macs);
  }
  assert_true(peak_of(turned, true) == peak_of(anew, true));
  sn_net_free(turned);
  sn_net_free(anew);
  sn_net_free(first);
}

/* Layers have names of modules and kernels, blocks are the modules that a list has several of. */
static void layers_are_named_by_modules(void **state) {
  (void)state;
  sn_net *net = load_net(DATA "resnet18.rec.gz", 2);
  uint32_t conv = find_layer(net, "layer1.0.conv1:convolution"), twice = find_layer(net, "layer1.0.relu:relu_#2");
  assert_string_equal(net->modules[conv].path, "layer1.0.conv1");
  assert_string_equal(net->modules[conv].block, "layer1.0");
  assert_string_equal(net->modules[twice].block, "layer1.0");
  assert_null(net->modules[find_layer(net, "conv1:convolution")].block);
  assert_int_equal(net->recorded->n_regions, 8);
  assert_int_equal(net->recorded->backwards, 1);
  assert_int_equal(net->parameters, 11689512); /* torchvision's */
  sn_net_free(net);
  net = load_net(DATA "gan.rec.gz", 2);
  assert_int_equal(net->recorded->backwards, 2);
  sn_net_free(net);
}

/* The norm of layer1.0 changes nothing beside what it makes, and the relu_ behind it is a part of it; the sum with the
 * shortcut is a part of none, as it reads another tensor. */
static void kinds_are_those_of_layers(void **state) {
  (void)state;
  sn_net *net = load_net(DATA "resnet18.rec.gz", 2);
  const struct sn_recorded *w = net->recorded;
  uint32_t conv = find_layer(net, "layer1.0.conv1:convolution"),
           norm = find_layer(net, "layer1.0.bn1:cudnn_batch_norm");
  uint32_t relu = find_layer(net, "layer1.0.relu:relu_"), sum = find_layer(net, "layer1.0:add_"), parts = 0, aside = 0;
  assert_int_equal(net->layers[conv].op, SN_RECORDED_HEAVY);
  assert_int_equal(net->layers[norm].op, SN_RECORDED_MASKED);
  assert_int_equal(net->layers[find_layer(net, "layer1.0.bn2:cudnn_batch_norm")].op, SN_RECORDED); /* the sum's */
  for (uint32_t i = 0; i < w->n_ops; i++) {
    if (w->part_of[i] == SN_NONE) continue;
    assert_true(i < w->n_forward && w->layer[i] != sum);
    if (w->layer[i] == relu) assert_int_equal(w->layer[w->part_of[i]], norm);
    parts++;
  }
  for (uint32_t s = 0; s < w->record->n_storages; s++) aside += w->aside[s];
  assert_int_equal(parts, 9);      /* of 20 norms those without a sum or a projection behind them */
  assert_int_equal(aside, 20 * 3); /* mean, deviation and what cuDNN keeps */
  sn_net_free(net);
}

/* ---- damaged files ---- */

#define HEAD                                                                                                           \
  "{\"snsim_recording\":1,\"torch\":\"2.8\",\"name\":\"n\",\"batches\":[2],\"sm\":80,\"iterations\":1,\"assumed\":"    \
  "[],\"compiled\":false}\n"
#define TABLES                                                                                                         \
  "{\"kernels\":[[\"aten.mm.default\",16]]}\n{\"modules\":[[\"\",\"\"]]}\n{\"calls\":[[0,0]]}\n{\"storages\":"         \
  "[[64,0,\"float32\",\"cuda\",\"value\"],[128,0,\"float32\",\"cuda\",\"value\"]]}\n{\"parameters\":[]}\n"
#define OP "[\"o\",0,0,0,0,[],[0],[],0,0,64,\"float32\"]\n"

#define PARAMETERS(row) HEAD "{\"storages\":[[64,0,\"float32\",\"cuda\",\"parameter\"]]}\n{\"parameters\":[" row "]}\n"

static const struct {
  const char *text, *error;
} damaged[] = {
    {"", "t: the file is empty"},
    {"hello\n", "t:1: not a recording: its first line is no JSON (docs/record.md)"},
    {"[1]\n", "t:1: not a recording: its first line is {\"snsim_recording\": 1, ..} (docs/record.md)"},
    {"{}\n", "t:1: not a recording: its first line is {\"snsim_recording\": 1, ..} (docs/record.md)"},
    {"{\"snsim_recording\":2}\n",
     "t:1: a recording of another version than 1; record it again with this snsim's package"},
    {"{\"snsim_recording\":1,\"bathces\":[2]}\n", "t:1: unknown key \"bathces\" (did you mean \"batches\"?)"},
    {"{\"snsim_recording\":1}\n", "t:1: \"batches\" is missing"},
    {"{\"snsim_recording\":1,\"batches\":[2,3,4]}\n", "t:1: batches: more than 2"},
    {"{\"snsim_recording\":1,\"batches\":[0]}\n", "t:1: batches: a whole number from 1 to 16777216 was expected"},
    {HEAD "{\"kernel\":[]}\n", "t:2: unknown table \"kernel\""},
    {HEAD "{\"kernels\":3}\n", "t:2: kernels: a list was expected"},
    {HEAD "{\"kernels\":[3]}\n", "t:2: kernels: a text was expected"},
    {HEAD "{\"kernels\":[[\"a\",1]\n", "t:2: this line is no JSON: the file is damaged or cut off"},
    {HEAD "{\"kernels\":[[\"a\",1\n", "t:2: this line is no JSON: the file is damaged or cut off"},
    {HEAD "{\"kernels\":[[\"a\",1]]}]\n", "t:2: this line is no JSON: the file is damaged or cut off"},
    {HEAD "{\"calls\":[[0,0]]}\n", "t:2: calls: module: not a number of the table, which has 0"},
    {HEAD TABLES "{\"calls\":[]}\n", "t:7: the table \"calls\" is there twice"},
    {HEAD "{\"storages\":[[64,0,\"float32\",\"cuda\",\"weights\"]]}\n",
     "t:2: storages: a role is one of parameter, buffer, given, state, value"},
    {HEAD "{\"storages\":[[9007199254740992,0,\"float32\",\"cuda\",\"value\"]]}\n",
     "t:2: storages: a: a whole number below 2^52 was expected, or two, [a, b], for a + b x batch"},
    {PARAMETERS("[\"w\",0,0,16,1,0,[],[]]"),
     "t:3: parameters: rows: a whole number from 1 to 4503599627370496 was expected"},
    {PARAMETERS("[\"w\",0,0,16,1,3,[],[]]"), "t:3: parameters: 16 elements are no 3 rows"},
    {PARAMETERS("[\"w\",0,0,16,1,4]"), "t:3: parameters: gradients: a list was expected"},
    {PARAMETERS("[\"w\",0,0,16,1,4,[0],[1]]"), "t:3: parameters: states: not a number of the table, which has 1"},
    {HEAD TABLES "[\"x\"]\n", "t:7: the event \"x\" is none that this version of snsim knows"},
    {HEAD TABLES "[3]\n", "t:7: an event is a list that begins with its kind, [\"o\", ..]"},
    {HEAD TABLES "[\"i\",1]\n", "t:7: iteration 1 begins where 0 would"},
    {HEAD TABLES "[\"<\",0]\n", "t:7: arguments: a list of storages was expected"},
    {HEAD TABLES "[\"<\",0,[2]]\n", "t:7: storage: not a number of the table, which has 2"},
    {HEAD TABLES "[\"o\",0,0]\n", "t:7: an operation has 12 items at least, not 3"},
    {HEAD TABLES "[\"o\",1,0,0,0,[],[0],[],0,0,64,\"f\"]\n", "t:7: kernel: not a number of the table, which has 1"},
    {HEAD TABLES "[\"o\",0,0,0,0,[1],[0],[],0,0,64,\"f\"]\n", "t:7: reads: storage 1 is not there"},
    {HEAD TABLES OP OP, "t:8: storage 0 is made twice"},
    {HEAD TABLES "[\"b\",1]\n", "t:7: storage 1 is made where 0 would be: they are numbered as they appear"},
    {HEAD TABLES "[\"f\",0]\n", "t:7: storage 0 is not there yet"},
    {HEAD TABLES OP "[\"f\",0]\n[\"f\",0]\n", "t:9: storage 0 is gone already"},
    {HEAD TABLES OP "[\"f\",0]\n[\"s\",0,0,0]\n", "t:9: handle 0 is of storage 0, which is not there"},
    {HEAD TABLES OP "[\"g\",0,0]\n[\"f\",0]\n[\"h\",1,0]\n", "t:10: ghost 0 is not of storage 1"},
    {HEAD TABLES OP "[\"u\",0]\n", "t:8: handle: not a number of the table, which has 0"},
    {HEAD TABLES OP "[\"s\",0,0,0]\n[\"s\",0,0,0]\n", "t:9: handle 0 was there before"},
    {HEAD TABLES OP "[\"<\",0,[]]\n[\">\",0]\n[\">\",0]\n",
     "t:10: call 0 is left and was not the last that was entered"},
    {HEAD TABLES "[\"i\",0]\n" OP, "t:8: the file is cut off: its last line is no [\"e\"]; record it again"},
    {HEAD TABLES "[\"i\",0]\n[\"e\"]\n", "t:8: nothing was recorded: the file has no operation"},
    {HEAD TABLES "[\"i\",0]\n" OP "[\"e\"]\n" OP, "t:10: an event behind the end"},
    {HEAD TABLES "[\"i\",0]\n[\"o\",0,", "t:8: this line is no JSON: the file is damaged or cut off"},
};

static void what_is_wrong_is_told_with_its_line(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_arena *arena = sn_arena_new();
    assert_null(sn_record_parse("t", damaged[i].text, strlen(damaged[i].text), arena, &err));
    assert_string_equal(err.text, damaged[i].error);
    assert_int_equal(err.code, SN_BAD_INPUT);
    sn_arena_free(arena);
  }
}

static void a_good_file_is_read(void **state) {
  (void)state;
  static const char text[] = HEAD TABLES "[\"i\",0]\n" OP "[\"s\",0,0,0]\n[\"f\",0]\n[\"u\",0]\n[\"e\"]\n";
  sn_err err = SN_ERR_INIT;
  sn_arena *arena = sn_arena_new();
  const sn_record *record = sn_record_parse("t", text, strlen(text), arena, &err);
  must(&err);
  assert_int_equal(record->n_ops, 1);
  assert_int_equal(record->n_events, 5);
  assert_int_equal(record_peak(record, 2, true), 64);
  assert_int_equal(sn_record_check_batch(record, 3, &err), SN_BAD_USAGE);
  assert_string_equal(err.text, "--batch 3: n was recorded at batch 2 alone; give --batch 2, or record it at 3");
  sn_arena_free(arena);
}

/* As another writer of JSON may put it: spaces, several tables a line, characters by their numbers. */
static void tables_are_read_however_they_are_written(void **state) {
  (void)state;
  static const char text[] = HEAD "{ \"kernels\" : [ [\"aten.mm.default\", 16] , [\"aten.\\u0061dd.Tensor\",0] ], "
                                  "\"modules\": [[\"\",\"\"], [\"b\\\"1\",\"B\"]] }\n"
                                  "{\"calls\":[[0,0],[0, 1]]}\n{\"storages\":[[64,0,\"float32\",\"cuda\",\"value\"]]}\n"
                                  "{\"parameters\":[[\"w\",0,0,16,true]]}\n{}\n[\"i\",0]\n" OP "[\"e\"]\n";
  sn_err err = SN_ERR_INIT;
  sn_arena *arena = sn_arena_new();
  const sn_record *record = sn_record_parse("t", text, strlen(text), arena, &err);
  must(&err);
  assert_int_equal(record->n_kernels, 2);
  assert_string_equal(record->kernels[1].name, "aten.add.Tensor");
  assert_string_equal(record->modules[1].path, "b\"1");
  assert_int_equal(record->calls[1].module, 1);
  assert_true(record->parameters[0].trained);
  assert_int_equal(record->parameters[0].rows, 0); /* an older file's */
  sn_arena_free(arena);
}

/* A file that ends in the middle is refused wherever that is, packed or not. */
static void a_cut_file_is_refused(void **state) {
  (void)state;
  FILE *in = fopen(DATA "small_cnn.rec.gz", "rb");
  static char bytes[1 << 16];
  assert_non_null(in);
  size_t size = fread(bytes, 1, sizeof bytes, in);
  fclose(in);
  for (size_t cut = 20; cut < size; cut += 97) {
    sn_err err = SN_ERR_INIT;
    FILE *out = fopen("cut.rec.gz", "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, cut, out), cut);
    fclose(out);
    sn_net *net = sn_net_load("cut.rec.gz", 2, 0, &err);
    assert_null(net);
    assert_int_equal(err.code, SN_BAD_INPUT);
  }
  remove("cut.rec.gz");
}

static void what_a_recording_has_is_not_given(void **state) {
  (void)state;
  static const struct {
    const char *spec;
    uint32_t depth, image;
  } given[] = {{DATA "gan.rec.gz", 0, 64}, {DATA "gan.rec.gz", 3, 0}, {DATA "gan.rec.gz+lora=8", 0, 0}};
  for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
    sn_err err = SN_ERR_INIT;
    assert_null(sn_net_load_depth(given[i].spec, given[i].depth, 2, given[i].image, &err));
    assert_int_equal(err.code, SN_BAD_USAGE);
    assert_non_null(strstr(err.text, "it was recorded with"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(peaks_are_those_of_the_recorder),
      cmocka_unit_test(another_batch_is_what_reading_anew_gives),
      cmocka_unit_test(layers_are_named_by_modules),
      cmocka_unit_test(kinds_are_those_of_layers),
      cmocka_unit_test(what_is_wrong_is_told_with_its_line),
      cmocka_unit_test(a_good_file_is_read),
      cmocka_unit_test(tables_are_read_however_they_are_written),
      cmocka_unit_test(a_cut_file_is_refused),
      cmocka_unit_test(what_a_recording_has_is_not_given),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
