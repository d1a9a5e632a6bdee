/* Weights and gradients in files: what a training starts from and what it leaves, by the names of the network's layers,
 * in the order and shape that PyTorch gives them (docs/weights.md):
 *
 *   CONV, FC   <layer>.weight (outputs x inputs of a group x height x width; outputs x inputs), <layer>.bias
 *   DECONV     <layer>.weight (inputs x outputs of a group x height x width), <layer>.bias
 *   BN         <layer>.weight, <layer>.bias, and beside weights <layer>.running_mean, <layer>.running_var
 *   LAYER_NORM <layer>.weight, <layer>.bias; RMS_NORM <layer>.weight; SCALE <layer>.weight (channels x 1 x 1)
 *   EMBEDDING  <layer>.weight (rows x channels), as POSITION; TOKEN <layer>.weight (1 x channels)
 *   ATTENTION  <layer>.weight (rows x heads), with a table
 *
 * Of weights that several layers use there is the owner's name alone. Gradients are of what is trained.
 *
 *   sn_weights *weights = sn_weights_open("weights.safetensors", net, &err);      checked, nothing is read yet
 *   sn_weights_read(weights, state, &err);                                        as often as there are trainings
 *   sn_weights_close(weights);
 *   sn_weights_save("trained.safetensors", SN_SAVE_WEIGHTS, state, &err);
 */
#ifndef SN_EXEC_KERNEL_WEIGHTS_H
#define SN_EXEC_KERNEL_WEIGHTS_H

#include "base/err.h"
#include "exec/kernel/state.h"
#include "models/net/net.h"

typedef struct sn_weights sn_weights;

/* SN_BAD_FILE, SN_BAD_INPUT with the path: no tensor file, or one whose names and shapes are not exactly the net's.
 * `path` and the net must outlive the weights. */
sn_weights *sn_weights_open(const char *path, const sn_net *net, sn_err *err);
/* Into the parameters and running statistics of a state of the same net. SN_BAD_FILE, also where the file was changed
 * since it was opened; SN_BAD_INPUT where a number is not finite. */
sn_status sn_weights_read(const sn_weights *weights, sn_state *state, sn_err *err);
void sn_weights_close(sn_weights *weights);

typedef enum sn_save { SN_SAVE_WEIGHTS, SN_SAVE_GRADIENTS } sn_save;

/* Replaces the file whole. SN_BAD_FILE. */
sn_status sn_weights_save(const char *path, sn_save what, const sn_state *state, sn_err *err);

/* The files of a session; NULL: none. */
typedef struct sn_weight_files {
  const char *load;             /* what every training starts from */
  const char *save, *gradients; /* where the first one that is whole leaves its weights and last gradients */
} sn_weight_files;
sn_status sn_weight_files_save(const sn_weight_files *files, const sn_state *state, sn_err *err);

#endif
