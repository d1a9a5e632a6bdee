/* Schedules of pipelines as lists; see the header. pipeline_play.c plays them.
 *
 * gpipe, 1f1b and interleaved are one rule: so many forwards ahead, then a forward and a backward by turns, then the
 * backwards that are left. They differ in how many are ahead, and the k-th forward is of micro-batch and chunk by rounds:
 * p micro-batches through chunk 0, the same through chunk 1, ..; then the next p. With one chunk that is micro-batch k.
 */
#include "sim/parallel/pipeline.h"

#include "base/checked.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[SN_PIPELINE_KINDS] = {[SN_PIPELINE_GPIPE] = "gpipe",
                                                     [SN_PIPELINE_1F1B] = "1f1b",
                                                     [SN_PIPELINE_INTERLEAVED] = "interleaved",
                                                     [SN_PIPELINE_ZB_H1] = "zb-h1"};

const char *sn_pipeline_kind_name(sn_pipeline_kind kind) {
  return names[kind];
}

sn_pipeline_kind sn_pipeline_kind_of(const sn_mesh *mesh) {
  switch (mesh->schedule) {
  case SN_SCHEDULE_1F1B:
    return SN_PIPELINE_1F1B;
  case SN_SCHEDULE_GPIPE:
    return SN_PIPELINE_GPIPE;
  case SN_SCHEDULE_ZB_H1:
    return SN_PIPELINE_ZB_H1;
  default:
    return SN_PIPELINE_INTERLEAVED;
  }
}

/* ---- what can be ---- */

static sn_status check_range(const char *what, uint32_t value, uint32_t high, sn_err *err) {
  if (value >= 1 && value <= high) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "a pipeline has from 1 to %" PRIu32 " %s, and %" PRIu32 " are asked for; %" PRIu32 " would do", high,
                 what, value, value ? high : 1);
}

/* Rounds of interleaved are of as many micro-batches as there are stages. */
static sn_status check_rounds(uint32_t stages, uint32_t micros, sn_err *err) {
  const uint32_t over = micros % stages;
  if (over == 0) return SN_OK;
  const uint32_t below = micros - over, above = below + stages;
  return sn_fail(
      err, SN_BAD_USAGE,
      "interleaved goes through its chunks in rounds of as many micro-batches as there are stages, and %" PRIu32
      " are no multiple of %" PRIu32 "; the nearest number that is one is %" PRIu32,
      micros, stages, below > 0 && over <= stages - over ? below : above);
}

static sn_status check(const sn_pipeline *made, sn_err *err) {
  if (check_range("stages", made->stages, SN_PIPELINE_STAGES, err) != SN_OK) return err->code;
  if (check_range("micro-batches", made->micros, SN_PIPELINE_ENTRIES, err) != SN_OK) return err->code;
  if (check_range("chunks a stage", made->chunks, SN_PIPELINE_CHUNKS, err) != SN_OK) return err->code;
  if (made->kind == SN_PIPELINE_INTERLEAVED) return check_rounds(made->stages, made->micros, err);
  if (made->chunks == 1) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "%s has one chunk a stage, and %" PRIu32 " are asked for; interleaved:%" PRIu32 " has so many",
                 names[made->kind], made->chunks, made->chunks);
}

/* ---- lists ---- */

/* What is being written of a stage. */
typedef struct writer {
  const sn_pipeline *of;
  sn_pipeline_entry *next;
  uint32_t forwards, backwards, weights; /* written */
} writer;

static void put(writer *w, sn_pipeline_pass pass) {
  uint32_t *count = pass == SN_PIPELINE_FORWARD    ? &w->forwards
                    : pass == SN_PIPELINE_BACKWARD ? &w->backwards
                                                   : &w->weights;
  const uint32_t k = (*count)++, stages = w->of->stages, chunks = w->of->chunks;
  const uint32_t chunk = k / stages % chunks;
  *w->next++ = (sn_pipeline_entry){.micro = k / stages / chunks * stages + k % stages,
                                   .chunk = (uint16_t)(pass == SN_PIPELINE_FORWARD ? chunk : chunks - 1 - chunk),
                                   .pass = (uint8_t)pass};
}

static uint32_t forwards_ahead(const sn_pipeline *of, uint32_t stage, uint32_t all) {
  const uint32_t behind = of->stages - stage - 1;
  if (of->kind == SN_PIPELINE_GPIPE) return all;
  const uint32_t wanted = of->kind == SN_PIPELINE_1F1B ? behind : 2 * behind + (of->chunks - 1) * of->stages;
  return wanted < all ? wanted : all;
}

static void write_by_turns(writer *w, uint32_t stage) {
  const uint32_t all = w->of->micros * w->of->chunks, ahead = forwards_ahead(w->of, stage, all);
  while (w->forwards < ahead) put(w, SN_PIPELINE_FORWARD);
  while (w->forwards < all) {
    put(w, SN_PIPELINE_FORWARD);
    put(w, SN_PIPELINE_BACKWARD);
  }
  while (w->backwards < all) put(w, SN_PIPELINE_BACKWARD);
}

/* Stage r puts off the gradients of weights of r micro-batches: so it keeps as many as the first stage, and has work left
 * for the time in which it would wait. */
static void write_zb_h1(writer *w, uint32_t stage) {
  const uint32_t all = w->of->micros, ahead = w->of->stages - stage;
  while (w->forwards < ahead && w->forwards < all) put(w, SN_PIPELINE_FORWARD);
  while (w->backwards < all) {
    put(w, SN_PIPELINE_BACKWARD);
    if (w->backwards > stage) put(w, SN_PIPELINE_WEIGHTS);
    if (w->forwards < all) put(w, SN_PIPELINE_FORWARD);
  }
  while (w->weights < all) put(w, SN_PIPELINE_WEIGHTS);
}

/* Of how many micro-batches the lists would not be too long. */
static uint32_t most_micros(const sn_pipeline *made) {
  const uint32_t passes = made->split ? 3 : 2,
                 most = (uint32_t)SN_PIPELINE_ENTRIES / passes / made->chunks / made->stages;
  return made->kind == SN_PIPELINE_INTERLEAVED ? most / made->stages * made->stages : most;
}

static sn_status fail_long(const sn_pipeline *made, sn_err *err) {
  const uint32_t most = most_micros(made);
  char works[64] = "fewer stages or chunks";
  if (most > 0) snprintf(works, sizeof works, "up to %" PRIu32 " micro-batches", most);
  return sn_fail(err, SN_BAD_USAGE,
                 "%" PRIu32 " micro-batches through %" PRIu32 " stages of %" PRIu32
                 " chunks are more than %d steps; %s are not",
                 made->micros, made->stages, made->chunks, SN_PIPELINE_ENTRIES, works);
}

static sn_status make_room(sn_pipeline *made, sn_err *err) {
  uint64_t parts, entries;
  if (!sn_mul(made->micros, made->chunks, &parts) || !sn_mul(parts, made->split ? 3 : 2, &parts) ||
      !sn_mul(parts, made->stages, &entries) || entries > SN_PIPELINE_ENTRIES)
    return fail_long(made, err);
  made->n_entries = (uint32_t)parts;
  made->entries = malloc(entries * sizeof *made->entries);
  return made->entries ? SN_OK : sn_fail_memory(err);
}

sn_pipeline *sn_pipeline_new(sn_pipeline_kind kind, uint32_t stages, uint32_t micros, uint32_t chunks, sn_err *err) {
  sn_pipeline *made = malloc(sizeof *made);
  if (!made) {
    sn_fail_memory(err);
    return NULL;
  }
  *made = (sn_pipeline){
      .kind = kind, .stages = stages, .micros = micros, .chunks = chunks, .split = kind == SN_PIPELINE_ZB_H1};
  if (check(made, err) != SN_OK || make_room(made, err) != SN_OK) {
    sn_pipeline_free(made);
    return NULL;
  }
  for (uint32_t stage = 0; stage < stages; stage++) {
    writer w = {.of = made, .next = made->entries + (size_t)stage * made->n_entries};
    made->split ? write_zb_h1(&w, stage) : write_by_turns(&w, stage);
    assert(w.next == made->entries + (size_t)(stage + 1) * made->n_entries);
  }
  return made;
}

void sn_pipeline_free(sn_pipeline *pipeline) {
  if (pipeline) free(pipeline->entries);
  free(pipeline);
}

const sn_pipeline_entry *sn_pipeline_list(const sn_pipeline *pipeline, uint32_t stage) {
  assert(stage < pipeline->stages);
  return pipeline->entries + (size_t)stage * pipeline->n_entries;
}

uint32_t sn_pipeline_in_flight(const sn_pipeline *pipeline, uint32_t stage) {
  const sn_pipeline_entry *list = sn_pipeline_list(pipeline, stage);
  const sn_pipeline_pass last = pipeline->split ? SN_PIPELINE_WEIGHTS : SN_PIPELINE_BACKWARD;
  uint32_t now = 0, most = 0;
  for (uint32_t i = 0; i < pipeline->n_entries; i++) {
    if (list[i].pass == SN_PIPELINE_FORWARD && ++now > most) most = now;
    if (list[i].pass == last) now--;
  }
  return most;
}
