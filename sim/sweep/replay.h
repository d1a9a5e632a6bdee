/* Replay: a stored run simulated once more, for what the store does not keep: its plans and traces.
 *
 *   sn_replay *replay = sn_replay_open(run, NULL, NULL, NULL, &err);
 *   sn_timeline *timeline = sn_replay_timeline(replay, &run->results[0], &err);
 *
 * The run's head says how it was made. A network or GPU profile that came from a file has to be there again; where it
 * lies elsewhere by now, or a GPU is one this program does not know by name, the caller names the file.
 *
 * What comes out is compared with what is stored - sizes of the net, peak, pool, external memory, time, instructions -
 * and where anything differs (the file has changed, or the program has) the answer is SN_BAD_INPUT, which says what
 * differs: a picture of another plan than the stored one is never made.
 *
 * A measured run is not simulated: its results hold a recording of what was executed (sim/play/recording.h), for which
 * only the network has to be there.
 */
#ifndef SN_SIM_SWEEP_REPLAY_H
#define SN_SIM_SWEEP_REPLAY_H

#include "base/err.h"
#include "sim/ask/run.h"
#include "sim/capacity/remedy.h"
#include "sim/device/calibration.h"
#include "sim/play/timeline.h"

typedef struct sn_replay sn_replay;

/* Loads network and device of a run, which must outlive the replay. `net` and `gpu`, unless NULL, are used in place of
 * the stored names. A run of measured costs needs the calibration they came from, which must outlive the replay as
 * well; else it is NULL. SN_BAD_INPUT, SN_BAD_FILE. */
sn_replay *sn_replay_open(const sn_run *run, const char *net, const char *gpu, const sn_calibration *calibration,
                          sn_err *err);
void sn_replay_free(sn_replay *replay);

/* What would fit where none of `count` results of the run does, which are all made with the same context. */
sn_status sn_replay_remedy(const sn_replay *replay, const sn_result *const *results, uint32_t count, sn_remedy *remedy,
                           sn_err *err);

/* Simulates one of the run's results again, or plays back its recording; of a measured run SN_BAD_INPUT for a result
 * without one: what was predicted, and what an older snsim measured. */
sn_timeline *sn_replay_timeline(const sn_replay *replay, const sn_result *result, sn_err *err);

/* The timeline of a packed result's strategy as it is by first fit. NULL without an error for a result that is not
 * packed, or was measured. */
sn_timeline *sn_replay_first_fit(const sn_replay *replay, const sn_result *result, sn_err *err);

#endif
