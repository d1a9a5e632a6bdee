/* Event engine: in-order lanes that run side by side, meet at fences and may share a link, or slow each other.
 *
 *   sn_engine_run(engine, lane, ns, tag)     occupies the lane for ns
 *   sn_engine_copy(engine, lane, ns, tag)    the same, but copies of all lanes that run at once share one link: k of
 *                                            them each advance at 1/k speed (only with shared_link)
 *   sn_engine_set_speeds(engine, run, copy)  runs advance at speed `run` while a copy goes on, copies at speed `copy`
 *                                            while a run does: a CPU copies with the processors that it computes with
 *   sn_engine_run_team(engine, lane, ns, running, tag)    occupies the lane for ns and more where others of these slow
 *                                            it (sim/device/pace.h); ns is what it takes alone
 *   sn_engine_signal / sn_engine_wait        fences; wait holds the lane until the fence has passed
 *   sn_engine_drain                          lets time pass until every lane is idle
 *
 * The clock stands until drain. Lanes that do not slow each other need no events: when a task begins and ends follows
 * from its lane and its fence, so it is settled when it is given, or in drain where its fence is signalled later.
 * Elsewhere an event is the end of a lane's work; the next one is the earliest, of equal times
 * the one on the lane with the lower number, so the order depends on nothing but the input. With the handful of lanes
 * a device has, a look at each lane is faster than a heap. Time is int64 ns; shares of the link are exact: work is kept
 * in 1/840 ns, which every k up to 8 divides; speeds are rounded to 1/840. All work together is at most
 * SN_ENGINE_MAX_NS, far from where the clock or a share would overflow; more is SN_BAD_INPUT.
 */
#ifndef SN_SIM_PLAY_ENGINE_H
#define SN_SIM_PLAY_ENGINE_H

#include "base/err.h"
#include "sim/device/pace.h"
#include "sim/play/trace.h"

#include <stdbool.h>
#include <stdint.h>

enum { SN_ENGINE_LANES = 13, SN_ENGINE_COPIES = 8 }; /* of these may copy at once */
#define SN_ENGINE_MAX_NS INT64_C(1000000000000000)   /* 11.6 days */

typedef struct sn_engine sn_engine;

/* `spans` receives the times by tag; a tag stands for one task between two drains. */
sn_engine *sn_engine_new(uint32_t n_lanes, uint32_t n_fences, bool shared_link, sn_span *spans, sn_err *err);
void sn_engine_free(sn_engine *engine);

/* Of what they are alone, SN_ENGINE_LEAST_SPEED to 1; others are taken as the nearest of these. Comes ahead of all
 * work. */
#define SN_ENGINE_LEAST_SPEED 0.1
void sn_engine_set_speeds(sn_engine *engine, double run, double copy);

sn_status sn_engine_run(sn_engine *engine, uint32_t lane, int64_t ns, uint32_t tag, sn_err *err);
sn_status sn_engine_copy(sn_engine *engine, uint32_t lane, int64_t ns, uint32_t tag, sn_err *err);
/* sn_engine_set_cores() comes first; `cores` must outlive the engine. */
void sn_engine_set_cores(sn_engine *engine, const sn_cores *cores);
sn_status sn_engine_run_team(sn_engine *engine, uint32_t lane, int64_t ns, sn_running running, uint32_t tag,
                             sn_err *err);
sn_status sn_engine_signal(sn_engine *engine, uint32_t lane, uint32_t fence, uint32_t tag, sn_err *err);
sn_status sn_engine_wait(sn_engine *engine, uint32_t lane, uint32_t fence, uint32_t tag, sn_err *err);

/* SN_BUG where lanes wait for a fence that nobody signals. */
sn_status sn_engine_drain(sn_engine *engine, sn_err *err);

/* The clock; it can be moved on while everything is idle (the host is busy with something else). */
int64_t sn_engine_now(const sn_engine *engine);
sn_status sn_engine_pass(sn_engine *engine, int64_t ns, sn_err *err);

int64_t sn_engine_busy(const sn_engine *engine, uint32_t lane);
int64_t sn_engine_stalled(const sn_engine *engine, uint32_t lane);
uint64_t sn_engine_events(const sn_engine *engine);

#endif
