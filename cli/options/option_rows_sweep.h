/* Rows of the table of options (option_table.c): the points of a sweep, and what of a sweep, timeline or pool is drawn. */
#ifndef SN_CLI_OPTIONS_OPTION_ROWS_SWEEP_H
#define SN_CLI_OPTIONS_OPTION_ROWS_SWEEP_H

#include "cli/options/option_values.h"
#include "cli/options/options.h"

/* clang-format off */
#define SN__OPTION_ROWS_OF_SWEEPS \
    {"nets", "NET|FILE.json,..", 0, SN_CMD_SWEEP, "Points", \
     "Networks, parted by commas: alexnet,resnet:n1=3,n2=4,./mine.json. What reads KEY=VALUE belongs to the family " \
     "before it. May be given several times, like all lists.", \
     sn__parse_list, offsetof(sn_args, axes[SN_AXIS_NETS])}, \
    {"batches", "N,..", 0, SN_CMD_SWEEP, "Points", \
     "Images per iteration: 16,32,64, ranges LOW:HIGH:STEP (16:256:16) and LOW:HIGH:xFACTOR (16:256:x2).", \
     sn__parse_list, offsetof(sn_args, axes[SN_AXIS_BATCHES])}, \
    {"images", "N|own,..", 0, SN_CMD_SWEEP, "Points", \
     "Height and width of the images, and own: the network's. Default: own.", sn__parse_list, \
     offsetof(sn_args, axes[SN_AXIS_IMAGES])}, \
    {"sequences", "N|own,..", 0, SN_CMD_SWEEP, "Points", \
     "Of networks of tokens: lengths of sequences, and own: the network's. Default: own.", sn__parse_list, \
     offsetof(sn_args, sequences)}, \
    {"gpus", "GPU|FILE.json,..", 0, SN_CMD_SWEEP, "Points", \
     "GPUs: names of `snsim list gpus` or files. Default: as that of --gpu of simulate.", sn__parse_list, \
     offsetof(sn_args, axes[SN_AXIS_GPUS])}, \
    {"memories", "SIZE|own,..", 0, SN_CMD_SWEEP, "Points", \
     "Usable memory of the GPUs, such as 8GiB, and own: what they have. Default: own.", sn__parse_list, \
     offsetof(sn_args, axes[SN_AXIS_MEMORIES])}, \
    {"links", "own|shared,..", 0, SN_CMD_SWEEP, "Points", \
     "own: copies out and in have a bandwidth each; shared: they share that of one direction. Default: own.", \
     sn__parse_list, offsetof(sn_args, axes[SN_AXIS_LINKS])}, \
    {"workspaces", "none|dynamic|max,..", 0, SN_CMD_SWEEP, "Points", "Of none, dynamic, max. Default: dynamic.", \
     sn__parse_list, offsetof(sn_args, axes[SN_AXIS_WORKSPACES])}, \
    {"externals", "host|peer|remote|disk,..", 0, SN_CMD_SWEEP, "Points", "Of host, peer, remote, disk. Default: host.", \
     sn__parse_list, offsetof(sn_args, axes[SN_AXIS_EXTERNALS])}, \
    {"allocators", "pool|cuda|pytorch|pytorch-expandable,..", 0, SN_CMD_SWEEP, "Points", \
     "Of pool, cuda, pytorch, pytorch-expandable. Default: pool.", sn__parse_list, \
     offsetof(sn_args, axes[SN_AXIS_ALLOCATORS])}, \
    {"optimizers", "momentum|sgd|adam|adamw|adam8bit|adamw8bit|rmsprop|adagrad|adafactor|lion,..", 0, SN_CMD_SWEEP, \
     "Points", "What updates parameters; adamw:impl=fused and the like name an implementation. Default: momentum.", \
     sn__parse_list, offsetof(sn_args, axes[SN_AXIS_OPTIMIZERS])}, \
    {"accumulates", "N,..", 0, SN_CMD_SWEEP, "Points", "Batches that an update is made of. Default: 1.", sn__parse_list, \
     offsetof(sn_args, axes[SN_AXIS_ACCUMULATES])}, \
    {"precisions", "fp32|tf32|tf32-conv|bf16|fp16|amp-bf16|amp-fp16,..", 0, SN_CMD_SWEEP, "Points", \
     "Bytes of what is trained. With amp-.., PyTorch's strategies are the default. Default: as PyTorch starts, " \
     "tf32-conv " \
     "where all GPUs have TF32, else fp32; of SuperNeurons fp32.", \
     sn__parse_list, offsetof(sn_args, axes[SN_AXIS_PRECISIONS])}, \
    {"parallels", "KEY=N,..", 0, SN_CMD_SWEEP, "Points", \
     "How GPUs share an iteration; each time it is given a mesh as of --parallel, one number of which may be a range: " \
     "--parallels fsdp=1:64:x2 --parallels tp=8,fsdp=1:8:x2. Default: dp=1, one GPU.", \
     sn__parse_list, offsetof(sn_args, axes[SN_AXIS_PARALLELS])}, \
    {"pools", "SIZE|all,..", 0, SN_CMD_SWEEP, "Points", \
     "Sizes of the pool, such as 3GiB, and all: what the device has left. Default: all.", sn__parse_list, \
     offsetof(sn_args, axes[SN_AXIS_POOLS])}, \
    {"grid", "FILE.json", 0, SN_CMD_SWEEP, "Points", "All of that from a JSON file (docs/sweep.md).", sn__parse_text, \
     offsetof(sn_args, grid)}, \
    {"net", "NET|FILE.json", 0, SN_CMD_PLOT, "What to draw", \
     "Of a sweep of several networks: which. Of a timeline or pool: the run's network, where its file lies elsewhere " \
     "by now.", \
     sn__parse_text, offsetof(sn_args, net)}, \
    {"gpu", "GPU|FILE.json", 0, SN_CMD_PLOT, "What to draw", \
     "Of a sweep of several GPUs: which. Default: as that of --gpu of simulate, where the sweep has that. Of a " \
     "timeline or pool: the profile of the run's GPU, where " \
     "that came from a file.", \
     sn__parse_gpu, 0}, \
    {"workspace", "none|dynamic|max", 0, SN_CMD_PLOT, "What to draw", \
     "Of a sweep of several workspaces: which. Default: dynamic.", sn__parse_condition, 0}, \
    {"external", "host|peer|remote|disk", 0, SN_CMD_PLOT, "What to draw", \
     "Of a sweep of several: which. Default: host.", sn__parse_condition, 0}, \
    {"allocator", "pool|cuda|pytorch|pytorch-expandable", 0, SN_CMD_PLOT, "What to draw", \
     "Of a sweep of several: which. Default: pool.", sn__parse_condition, 0}, \
    {"optimizer", "momentum|sgd|adam|adamw|adam8bit|adamw8bit|rmsprop|adagrad|adafactor|lion", 0, SN_CMD_PLOT, \
     "What to draw", "Of a sweep of several: which. Default: momentum.", sn__parse_condition, 0}, \
    {"accumulate", "N", 0, SN_CMD_PLOT, "What to draw", "Of a sweep of several numbers of batches an update: which.", \
     sn__parse_accumulate, offsetof(sn_args, options.iteration.accumulate)}, \
    {"precision", "fp32|tf32|tf32-conv|bf16|fp16|amp-bf16|amp-fp16", 0, SN_CMD_PLOT, "What to draw", \
     "Of a sweep of several: which. Default: fp32.", sn__parse_condition, 0}, \
    {"parallel", "KEY=N,..", 0, SN_CMD_PLOT, "What to draw", "Of a sweep of several meshes: which.", \
     sn__parse_scheme, 0}, \
    {"x", "batch|pool|memory|image|gpu|world", 0, SN_CMD_PLOT, "What to draw", \
     "What a sweep is drawn over; image also stands for the length of sequences; world is the number of GPUs, where " \
     "the curves are schemes of --parallels. Default: world of several meshes, else the first of these that has " \
     "several values.", \
     sn__parse_x, offsetof(sn_args, x)}, \
    {"batch", "N", 0, SN_CMD_PLOT, "What to draw", "Of a sweep of several batches: which.", sn__parse_size, \
     offsetof(sn_args, batch)}, \
    {"image", "N", 0, SN_CMD_PLOT, "What to draw", "Of a sweep of several images: which. Default: the network's own.", \
     sn__parse_image, offsetof(sn_args, image)}, \
    {"sequence", "N", 0, SN_CMD_PLOT, "What to draw", \
     "Of a sweep of several lengths of sequences: which. Default: own.", sn__parse_size, offsetof(sn_args, sequence)}, \
    {"memory", "SIZE", 0, SN_CMD_PLOT, "What to draw", "Of a sweep of several memories of a GPU: which.", \
     sn__parse_bytes, offsetof(sn_args, memory)}, \
    {"shared-link", NULL, 0, SN_CMD_PLOT, "What to draw", "Of a sweep of both kinds of link: the shared one.", \
     sn__parse_switch, offsetof(sn_args, options.shared_link)}, \
    {"pool", "SIZE", 0, SN_CMD_PLOT, "What to draw", "Of a sweep of several pools: which. Default: all.", \
     sn__parse_pool, offsetof(sn_args, options.pool_bytes)}
/* clang-format on */

#endif
