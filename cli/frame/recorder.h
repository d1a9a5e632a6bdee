/* Recordings of the user's own models: snsim.record (python/snsim/), run in the user's own Python.
 *
 *   snsim record train.py:make -o mine.rec
 *   snsim --net mymodel.py:Net --input 3,224,224 --batch 64     the recording is kept, and is the network from then on
 *
 * Python is the one that $SNSIM_PYTHON names, that of the environment which the program was installed into by pip, or the first
 * python3 on PATH. The package is found where the program was installed or built, else where that Python has it. */
#ifndef SN_CLI_FRAME_RECORDER_H
#define SN_CLI_FRAME_RECORDER_H

#include "cli/options/options.h"

/* Where --net is FILE.py:NAME: records it, unless that file and those beside it were recorded before with the same words by the same
 * Python, and args->net becomes the path of the recording, in the folder recordings/ beside the database. What of the loop
 * the recording has now is taken out of the options. SN_BAD_INPUT where it cannot be recorded, which Python has said in detail;
 * SN_BAD_DEVICE where there is no Python or no PyTorch. */
sn_status sn_recorder_take(sn_args *args, sn_err *err);

/* Writes a recording at a batch into `output` as PyTorch writes its allocator's history (python/snsim/_snapshot.py).
 * SN_BAD_USAGE where `net` is no recording; else errors as of recording. */
sn_status sn_recorder_snapshot(const char *net, uint32_t batch, const char *output, sn_err *err);

sn_status sn_cli_record(const sn_args *args, sn_err *err);

#endif
