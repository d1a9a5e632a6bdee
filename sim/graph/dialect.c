/* The dialects' tables; see the header. */
#include "sim/graph/dialect.h"

#include "models/op/op.h"

#include <stdio.h>
#include <string.h>

/* Reference, section 1. SOFTMAX reads only y, but the paper holds its x as well. */
static const sn_dialect superneurons =
    {
        .name = "superneurons",
        .summary = "SuperNeurons' runtime of 2018: forks copy, no storage is shared",
        .fork_copies = true,
        .data_gradient = true,
        .rules =
            {
                [SN_DATA] = {.gradient = SN_GRAD_NONE},
                [SN_CONV] = {.reads = {SN_X, SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_DECONV] = {.reads = {SN_X, SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_FC] = {.reads = {SN_X, SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_POOL] = {.reads = {SN_X, SN_Y, SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_ACT] = {.reads = {SN_X, SN_Y, SN_DY}, .gradient = SN_GRAD_IN_PLACE},
                [SN_LRN] = {.reads = {SN_X, SN_Y, SN_DY}, .gradient = SN_GRAD_IN_PLACE},
                [SN_BN] = {.reads = {SN_X, SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_DROPOUT] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_SOFTMAX] = {.reads = {SN_X, SN_Y}, .gradient = SN_GRAD_ON_OUTPUT},
                [SN_JOIN] = {.reads = {SN_DY}, .gradient = SN_GRAD_SHARE},
                [SN_FORK] = {.reads = {SN_DY}, .gradient = SN_GRAD_ACCUMULATE},
                [SN_CONCAT] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_MUL] = {.reads = {SN_ALL_X, SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_SCALE] = {.reads = {SN_X, SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_LAYER_NORM] = {.reads = {SN_X, SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_RMS_NORM] = {.reads = {SN_X, SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_EMBEDDING] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},
                [SN_POSITION] = {.reads = {SN_DY}, .gradient = SN_GRAD_IN_PLACE},
                [SN_TOKEN] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_TAKE] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_ATTENTION] = {.reads = {SN_ALL_X, SN_Y, SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_ROTARY] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_PROBABILITIES] = {.reads = {SN_Y, SN_DY}, .gradient = SN_GRAD_IN_PLACE},
                [SN_GROUP_NORM] = {.reads = {SN_X, SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_MATMUL] = {.reads = {SN_ALL_X, SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_RESHAPE] = {.reads = {SN_DY}, .gradient = SN_GRAD_IN_PLACE},
                [SN_TRANSPOSE] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_SLICE] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_PAD] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_RESIZE] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_EXPERTS] = {.reads = {SN_X, SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_GIVEN] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_EXPAND] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
            },
};

/* Planning, part C: MXNet 1.2.1. */
static const sn_dialect explicit_graph = {
    .name = "explicit",
    .summary = "MXNet's graph: values have many readers, gradients are summed, memory is taken over where permitted",
    .flattens = true,
    .rules =
        {
            [SN_DATA] = {.gradient = SN_GRAD_NONE},
            [SN_CONV] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},
            [SN_DECONV] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},
            [SN_FC] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW, .takes = SN_DX_TAKES_X},
            [SN_POOL] = {.reads = {SN_DY, SN_X, SN_Y}, .gradient = SN_GRAD_NEW, .takes = SN_DX_TAKES_X},
            [SN_ACT] = {.reads = {SN_DY, SN_Y}, .gradient = SN_GRAD_NEW, .takes = SN_Y_TAKES_X | SN_DX_TAKES_DY},
            [SN_LRN] = {.reads = {SN_DY, SN_X, SN_KEPT}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_AS_OUTPUT},
            [SN_BN] = {.reads = {SN_DY, SN_KEPT, SN_X}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_CHANNELS},
            [SN_DROPOUT] = {.reads = {SN_DY, SN_KEPT},
                            .gradient = SN_GRAD_NEW,
                            .saves = SN_SAVES_AS_OUTPUT,
                            .takes = SN_Y_TAKES_X | SN_DX_TAKES_DY},
            [SN_SOFTMAX] = {.reads = {SN_Y}, .gradient = SN_GRAD_NEW, .takes = SN_Y_TAKES_X | SN_DX_TAKES_Y},
            [SN_JOIN] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW, .takes = SN_Y_TAKES_X | SN_DX_TAKES_DY},
            [SN_FORK] = {.reads = {SN_DY}, .gradient = SN_GRAD_SUM, .takes = SN_DX_TAKES_DY},
            [SN_CONCAT] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
            [SN_MUL] = {.reads = {SN_DY, SN_ALL_X}, .gradient = SN_GRAD_NEW, .takes = SN_DX_TAKES_DY},
            [SN_SCALE] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW, .takes = SN_DX_TAKES_DY},
            [SN_LAYER_NORM] = {.reads = {SN_DY, SN_KEPT, SN_X}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_ROWS},
            [SN_RMS_NORM] = {.reads = {SN_DY, SN_KEPT, SN_X}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_ROWS},
            [SN_EMBEDDING] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
            [SN_POSITION] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
            [SN_TOKEN] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
            [SN_TAKE] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
            [SN_ATTENTION] = {.reads = {SN_DY, SN_ALL_X, SN_Y, SN_KEPT},
                              .gradient = SN_GRAD_NEW,
                              .saves = SN_SAVES_ATTENTION},
            [SN_FORM_PARTS] = {.reads = {SN_DY, SN_ALL_X, SN_KEPT},
                               .gradient = SN_GRAD_NEW,
                               .saves = SN_SAVES_PROBABILITIES},
            [SN_FORM_DROPPED_PARTS] = {.reads = {SN_DY, SN_ALL_X, SN_KEPT},
                                       .gradient = SN_GRAD_NEW,
                                       .saves = SN_SAVES_DROPPED},
            [SN_FORM_CAPPED_PARTS] = {.reads = {SN_DY, SN_ALL_X, SN_KEPT},
                                      .gradient = SN_GRAD_NEW,
                                      .saves = SN_SAVES_CAPPED},
            [SN_ROTARY] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
            [SN_PROBABILITIES] = {.reads = {SN_DY, SN_Y},
                                  .gradient = SN_GRAD_NEW,
                                  .takes = SN_Y_TAKES_X | SN_DX_TAKES_DY},
            [SN_GROUP_NORM] = {.reads = {SN_DY, SN_KEPT, SN_X}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_GROUPS},
            [SN_MATMUL] = {.reads = {SN_DY, SN_ALL_X}, .gradient = SN_GRAD_NEW},
            [SN_RESHAPE] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW, .takes = SN_Y_TAKES_X | SN_DX_TAKES_DY},
            [SN_TRANSPOSE] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
            [SN_SLICE] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
            [SN_PAD] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
            [SN_RESIZE] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
            [SN_EXPERTS] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},
            [SN_GIVEN] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
            [SN_EXPAND] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
            [SN_FORM_CURVED_ACT] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW, .takes = SN_DX_TAKES_DY},
            [SN_FORM_COMPOSED_GELU] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW, .takes = SN_DX_TAKES_DY},
        },
};

/* Frameworks, sections 1 to 3. A cross-entropy loss is a log-softmax and a negative log-likelihood, whose gradient
 * lives between the two backward steps. */
#define PYTORCH_RULES(act_apart)                                                                                       \
  {                                                                                                                    \
    [SN_DATA] = {.gradient = SN_GRAD_NONE}, [SN_CONV] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},             \
    [SN_DECONV] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},                                                   \
    [SN_FC] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},                                                       \
    [SN_FORM_TURNED_FC] = {.reads = {SN_DY, SN_X, SN_KEPT}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_AS_OUTPUT},     \
    [SN_POOL] = {.reads = {SN_DY, SN_X, SN_KEPT}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_INDICES},                 \
    [SN_ACT] = {.reads = {SN_DY, SN_Y}, .gradient = SN_GRAD_NEW, .takes = SN_Y_TAKES_IN_PLACE},                        \
    [SN_FORM_ACT_APART] = {.reads = {SN_DY, act_apart}, .gradient = SN_GRAD_NEW},                                      \
    [SN_LRN] = {.reads = {SN_DY, SN_X, SN_KEPT}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_LRN, .scratch = 3},        \
    [SN_BN] = {.reads = {SN_DY, SN_X, SN_KEPT}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_CHANNELS},                  \
    [SN_DROPOUT] = {.reads = {SN_DY, SN_KEPT}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_MASK},                       \
    [SN_SOFTMAX] = {.reads = {SN_Y}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_LOSS, .scratch = 1},                   \
    [SN_FORM_CAST_LOSS] = {.reads = {SN_Y, SN_KEPT},                                                                   \
                           .gradient = SN_GRAD_NEW,                                                                    \
                           .saves = SN_SAVES_CAST_LOSS,                                                                \
                           .scratch = 1},                                                                              \
    [SN_FORM_MSE] = {.reads = {SN_X}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_LOSS},                                \
    [SN_JOIN] = {.gradient = SN_GRAD_HAND_ON, .takes = SN_Y_TAKES_IN_PLACE}, [SN_FORK] = {.gradient = SN_GRAD_MEET},   \
    [SN_CONCAT] = {.gradient = SN_GRAD_VIEWS},                                                                         \
    [SN_FORM_AVERAGE_POOL] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},                                        \
    [SN_FORM_GLOBAL_AVERAGE_POOL] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},                                       \
    [SN_FORM_RELU6] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},                                               \
    [SN_FORM_LEAKY_APART] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},                                         \
    [SN_FORM_SMOOTH_ACT] = {.reads = {SN_DY, SN_Y}, .gradient = SN_GRAD_NEW, .takes = SN_Y_TAKES_IN_PLACE},            \
    [SN_RMS_NORM] = {.reads = {SN_DY, SN_X, SN_KEPT}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_RMS, .scratch = 2},   \
    [SN_FORM_FUSED_RMS] = {.reads = {SN_DY, SN_X, SN_KEPT}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_ROOTS},         \
    [SN_FORM_PLUS_ONE_RMS] = {.reads = {SN_DY, SN_X, SN_KEPT},                                                         \
                              .gradient = SN_GRAD_NEW,                                                                 \
                              .saves = SN_SAVES_PLUS_ONE_RMS,                                                          \
                              .scratch = 3},                                                                           \
    [SN_EMBEDDING] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},                                                      \
    [SN_POSITION] = {.reads = {SN_DY}, .gradient = SN_GRAD_PASS_ON},                                                   \
    [SN_TOKEN] = {.reads = {SN_DY}, .gradient = SN_GRAD_PASS_ON},                                                      \
    [SN_TAKE] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW, .view = true},                                             \
    [SN_ATTENTION] = {.reads = {SN_DY, SN_ALL_X, SN_Y, SN_KEPT}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_PADDED},   \
    [SN_FORM_SEEDLESS_ATTENTION] = {.reads = {SN_DY, SN_ALL_X, SN_Y, SN_KEPT},                                         \
                                    .gradient = SN_GRAD_NEW,                                                           \
                                    .saves = SN_SAVES_SEEDLESS},                                                       \
    [SN_FORM_PACKED_ATTENTION] = {.reads = {SN_DY, SN_ALL_X, SN_Y, SN_KEPT},                                           \
                                  .gradient = SN_GRAD_NEW,                                                             \
                                  .saves = SN_SAVES_PADDED,                                                            \
                                  .scratch = 3},                                                                       \
    [SN_FORM_PARTS] = {.reads = {SN_DY, SN_ALL_X, SN_KEPT}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_PROBABILITIES}, \
    [SN_FORM_DROPPED_PARTS] = {.reads = {SN_DY, SN_ALL_X, SN_KEPT},                                                    \
                               .gradient = SN_GRAD_NEW,                                                                \
                               .saves = SN_SAVES_DROPPED},                                                             \
    [SN_FORM_CAPPED_PARTS] = {.reads = {SN_DY, SN_ALL_X, SN_KEPT}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_CAPPED}, \
    [SN_ROTARY] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW, .scratch = 2},                                           \
    [SN_PROBABILITIES] = {.reads = {SN_DY, SN_Y}, .gradient = SN_GRAD_NEW},                                            \
    [SN_GROUP_NORM] = {.reads = {SN_DY, SN_X, SN_KEPT}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_GROUPS},            \
    [SN_MATMUL] = {.reads = {SN_DY, SN_ALL_X}, .gradient = SN_GRAD_NEW},                                               \
    [SN_RESHAPE] = {.gradient = SN_GRAD_HAND_ON, .view = true},                                                        \
    [SN_TRANSPOSE] = {.gradient = SN_GRAD_HAND_ON, .view = true},                                                      \
    [SN_SLICE] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW, .view = true},                                            \
    [SN_PAD] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW}, [SN_RESIZE] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW}, \
    [SN_EXPERTS] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},                                                  \
    [SN_GIVEN] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},                                                          \
    [SN_EXPAND] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW, .view = true},                                           \
    [SN_FORM_COMPOSED_GELU] = {.reads = {SN_DY, SN_X, SN_KEPT},                                                        \
                               .gradient = SN_GRAD_NEW,                                                                \
                               .saves = SN_SAVES_THREE_OUTPUTS,                                                        \
                               .scratch = 1},                                                                          \
    [SN_FORM_CURVED_ACT] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},                                          \
    [SN_FORM_TIMES] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW, .takes = SN_Y_TAKES_IN_PLACE},                       \
    [SN_MUL] = {.reads = {SN_DY, SN_ALL_X}, .gradient = SN_GRAD_NEW},                                                  \
    [SN_FORM_BROADCAST_MUL] = {.reads = {SN_DY, SN_ALL_X}, .gradient = SN_GRAD_NEW, .scratch = 1},                     \
    [SN_SCALE] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW, .scratch = 1},                                      \
    [SN_LAYER_NORM] = {.reads = {SN_DY, SN_X, SN_KEPT}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_ROWS},              \
  }

static const sn_dialect pytorch = {
    .name = "pytorch",
    .declared = true,
    .summary = "PyTorch 2, eager: storages are shared, activations and additions in place, gradients made as they come",
    .eager = true,
    .in_place = true,
    .narrow_loss = true,
    .rules = PYTORCH_RULES(SN_Y),
};

/* Planning, part D. What it says nothing of follows SINGA's other operators: new gradients, a mask as large as y, and
 * for LRN what cuDNN reads. */
static const sn_dialect singa =
    {
        .name = "singa",
        .summary = "SINGA's buffered graph, simulated only: a step is one kernel, updates stand behind their gradients",
        .declared = true,
        .by_kernel = true,
        .data_gradient = true,
        .rules =
            {
                [SN_DATA] = {.gradient = SN_GRAD_NONE},
                [SN_CONV] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},
                [SN_DECONV] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},
                [SN_FC] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},
                [SN_POOL] = {.reads = {SN_DY, SN_X, SN_Y}, .gradient = SN_GRAD_NEW},
                [SN_ACT] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},
                [SN_FORM_SMOOTH_ACT] = {.reads = {SN_DY, SN_Y}, .gradient = SN_GRAD_NEW},
                [SN_LRN] = {.reads = {SN_DY, SN_X, SN_Y}, .gradient = SN_GRAD_NEW},
                [SN_BN] = {.reads = {SN_X, SN_DY, SN_KEPT}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_CHANNELS},
                [SN_DROPOUT] = {.reads = {SN_DY, SN_KEPT}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_AS_OUTPUT},
                [SN_SOFTMAX] = {.reads = {SN_Y}, .gradient = SN_GRAD_NEW},
                [SN_JOIN] = {.gradient = SN_GRAD_HAND_ON},
                [SN_FORK] = {.gradient = SN_GRAD_MEET},
                [SN_CONCAT] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_MUL] = {.reads = {SN_DY, SN_ALL_X}, .gradient = SN_GRAD_NEW},
                [SN_SCALE] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},
                [SN_LAYER_NORM] = {.reads = {SN_X, SN_DY, SN_KEPT}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_ROWS},
                [SN_RMS_NORM] = {.reads = {SN_DY, SN_KEPT, SN_X}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_ROWS},
                [SN_EMBEDDING] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_POSITION] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_TOKEN] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_TAKE] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_ATTENTION] = {.reads = {SN_DY, SN_ALL_X, SN_Y, SN_KEPT},
                                  .gradient = SN_GRAD_NEW,
                                  .saves = SN_SAVES_ATTENTION},
                [SN_FORM_PARTS] = {.reads = {SN_DY, SN_ALL_X, SN_KEPT},
                                   .gradient = SN_GRAD_NEW,
                                   .saves = SN_SAVES_PROBABILITIES},
                [SN_FORM_DROPPED_PARTS] = {.reads = {SN_DY, SN_ALL_X, SN_KEPT},
                                           .gradient = SN_GRAD_NEW,
                                           .saves = SN_SAVES_DROPPED},
                [SN_FORM_CAPPED_PARTS] = {.reads = {SN_DY, SN_ALL_X, SN_KEPT},
                                          .gradient = SN_GRAD_NEW,
                                          .saves = SN_SAVES_CAPPED},
                [SN_ROTARY] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_PROBABILITIES] = {.reads = {SN_DY, SN_Y}, .gradient = SN_GRAD_NEW},
                [SN_GROUP_NORM] = {.reads = {SN_X, SN_DY, SN_KEPT}, .gradient = SN_GRAD_NEW, .saves = SN_SAVES_GROUPS},
                [SN_MATMUL] = {.reads = {SN_DY, SN_ALL_X}, .gradient = SN_GRAD_NEW},
                [SN_RESHAPE] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_TRANSPOSE] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_SLICE] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_PAD] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_RESIZE] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_EXPERTS] = {.reads = {SN_DY, SN_X}, .gradient = SN_GRAD_NEW},
                [SN_GIVEN] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
                [SN_EXPAND] = {.reads = {SN_DY}, .gradient = SN_GRAD_NEW},
            },
};

static const sn_dialect pytorch_1_7 = {
    .name = "pytorch-1.7",
    .declared = true,
    .summary =
        "PyTorch 1.7: as pytorch, but gradients that meet are added into a third tensor, and a ReLU out of place "
        "keeps its input",
    .eager = true,
    .in_place = true,
    .sums_apart = true,
    .rules = PYTORCH_RULES(SN_X),
};

static const sn_dialect *const dialects[SN_DIALECTS] = {&superneurons, &explicit_graph, &pytorch, &pytorch_1_7, &singa};

const sn_dialect *sn_dialect_of(sn_dialect_id id) {
  return dialects[id];
}

sn_status sn_dialect_parse(const char *text, sn_dialect_id *id, sn_err *err) {
  char all[100] = "";
  for (*id = 0; *id < SN_DIALECTS; ++*id) {
    if (strcmp(text, dialects[*id]->name) == 0) return SN_OK;
    size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", dialects[*id]->name);
  }
  return sn_fail(err, SN_BAD_USAGE, "--dialect: \"%.40s\" is none of: %s", text, all);
}

/* ReLU and what is known by its sign, among them ELU, whose derivative below 0 is y + 1. */
static bool is_curved(const sn_layer *layer) {
  const sn_act_mode act = layer->op == SN_ACT ? layer->attr->act : SN_ACT_RELU;
  return (act >= SN_ACT_GELU && act <= SN_ACT_GELU_NEW) || act == SN_ACT_SIN || act == SN_ACT_COS;
}

static bool is_times(const sn_layer *layer) {
  return layer->op == SN_ACT && layer->attr->act == SN_ACT_TIMES;
}

static bool is_broadcast(const sn_net *net, const sn_layer *layer) {
  return layer->op == SN_MUL && sn_layer_input(net, layer, 0)->bytes != sn_layer_input(net, layer, 1)->bytes;
}

static bool is_smooth(const sn_layer *layer) {
  const sn_act_mode act = layer->op == SN_ACT ? layer->attr->act : SN_ACT_RELU;
  return act == SN_ACT_TANH || act == SN_ACT_SIGMOID || act == SN_ACT_EXP;
}

bool sn_layer_in_place(const sn_net *net, const sn_layer *layer) {
  if (layer->attr->inplace != SN_INPLACE_UNSET) return layer->attr->inplace == SN_INPLACE_YES;
  if (is_smooth(layer) || is_curved(layer) || is_times(layer) || sn_layer_is_prelu(layer)) return false;
  sn_op op = net->layers[sn_layer_source(net, layer, 0)].op;
  return op == SN_CONV || op == SN_DECONV || op == SN_FC || op == SN_BN || op == SN_JOIN;
}

static uint32_t attention_form(const sn_layer *layer) {
  if (layer->attr->cap > 0) return SN_FORM_CAPPED_PARTS;
  if (layer->attr->parts) return layer->attr->ratio > 0 ? SN_FORM_DROPPED_PARTS : SN_FORM_PARTS;
  if (layer->n_inputs == 1) return SN_FORM_PACKED_ATTENTION;
  return layer->attr->seedless ? SN_FORM_SEEDLESS_ATTENTION : SN_ATTENTION;
}

static uint32_t form_of(const sn_net *net, const sn_layer *layer) {
  if (is_smooth(layer)) return SN_FORM_SMOOTH_ACT;
  if (layer->op == SN_ACT && layer->attr->act == SN_ACT_GELU_NEW) return SN_FORM_COMPOSED_GELU;
  if (is_curved(layer)) return SN_FORM_CURVED_ACT;
  if (is_times(layer)) return SN_FORM_TIMES;
  if (sn_layer_is_prelu(layer)) return SN_SCALE; /* keeps its input, and makes a product of its size for parameters */
  if (layer->op == SN_ATTENTION) return attention_form(layer);
  if (is_broadcast(net, layer)) return SN_FORM_BROADCAST_MUL;
  if (layer->op == SN_RMS_NORM && layer->attr->fused) return SN_FORM_FUSED_RMS;
  if (layer->op == SN_RMS_NORM && layer->attr->plus_one) return SN_FORM_PLUS_ONE_RMS;
  if (layer->op == SN_SOFTMAX && layer->attr->loss == SN_LOSS_MSE) return SN_FORM_MSE;
  if (layer->op == SN_ACT && layer->attr->act == SN_ACT_RELU6) return SN_FORM_RELU6;
  if (layer->op == SN_ACT && sn_layer_in_place(net, layer)) return SN_ACT;
  bool bends = layer->attr->act == SN_ACT_LEAKY || layer->attr->act == SN_ACT_ELU;
  if (layer->op == SN_ACT) return bends ? SN_FORM_LEAKY_APART : SN_FORM_ACT_APART;
  if (layer->op == SN_SLICE && layer->attr->turned) return SN_PAD; /* a copy, as that is */
  if (layer->op == SN_FC && layer->attr->turned) return SN_FORM_TURNED_FC;
  if (layer->op != SN_POOL || layer->attr->pool != SN_POOL_AVERAGE) return layer->op;
  return layer->attr->global ? SN_FORM_GLOBAL_AVERAGE_POOL : SN_FORM_AVERAGE_POOL;
}

const sn_op_rule *sn_dialect_rule(const sn_dialect *dialect, const sn_net *net, const sn_layer *layer) {
  const sn_op_rule *rule = &dialect->rules[form_of(net, layer)];
  return rule->gradient != SN_GRAD_NONE ? rule : &dialect->rules[layer->op];
}

uint32_t sn_saving_count(sn_saving saving) {
  switch (saving) {
  case SN_SAVES_NOTHING:
    return 0;
  case SN_SAVES_CHANNELS:
  case SN_SAVES_ROWS:
  case SN_SAVES_GROUPS:
  case SN_SAVES_RMS:
  case SN_SAVES_ATTENTION:
  case SN_SAVES_PADDED:
  case SN_SAVES_CAPPED:
  case SN_SAVES_CAST_LOSS:
    return 2;
  case SN_SAVES_LRN:
  case SN_SAVES_THREE_OUTPUTS:
  case SN_SAVES_DROPPED:
  case SN_SAVES_PLUS_ONE_RMS:
    return 3;
  case SN_SAVES_PROBABILITIES:
  case SN_SAVES_AS_OUTPUT:
  case SN_SAVES_MASK:
  case SN_SAVES_INDICES:
  case SN_SAVES_LOSS:
  case SN_SAVES_ROOTS:
  case SN_SAVES_SEEDLESS:
    break;
  }
  return 1;
}

enum {
  SEEDS = 2 * sizeof(uint64_t), /* of what a fused attention draws from */
  ALIGNED = 32                  /* kAlignLSE of PyTorch's efficient kernel */
};

/* Sizes of networks are far from 2^64. */
static uint64_t padded(const sn_layer *layer) {
  const uint64_t window = layer->attr->window, positions = (uint64_t)layer->out.h * layer->out.w;
  uint64_t queries = window > 0 ? window * window : positions, rows = (layer->statistics_bytes - SEEDS) / queries;
  return rows * ((queries + ALIGNED - 1) / ALIGNED * ALIGNED);
}

uint64_t sn_saving_bytes(sn_saving saving, uint32_t index, const sn_layer *layer, uint64_t output_bytes) {
  switch (saving) {
  case SN_SAVES_NOTHING:
    return 0;
  case SN_SAVES_CHANNELS:
    return (uint64_t)layer->out.c * sizeof(float);
  case SN_SAVES_AS_OUTPUT:
  case SN_SAVES_THREE_OUTPUTS:
    break;
  case SN_SAVES_CAST_LOSS:
    return index > 0 ? output_bytes : 2 * sizeof(float);
  case SN_SAVES_RMS:
    return index > 0 ? output_bytes : output_bytes / layer->out.c;
  case SN_SAVES_PLUS_ONE_RMS:
    return index == 0 ? output_bytes / layer->out.c : index == 1 ? layer->out.c * sizeof(float) : output_bytes;
  case SN_SAVES_ATTENTION:
    return index > 0 ? SEEDS : layer->statistics_bytes - SEEDS;
  case SN_SAVES_PADDED:
    return index > 0 ? SEEDS : padded(layer);
  case SN_SAVES_SEEDLESS:
    return layer->statistics_bytes - SEEDS;
  case SN_SAVES_PROBABILITIES:
  case SN_SAVES_CAPPED:
    return sn_attention_scores(layer) * sizeof(float);
  case SN_SAVES_DROPPED:
    return sn_attention_scores(layer) * (index < 2 ? sizeof(float) : 1);
  case SN_SAVES_MASK:
    return layer->mask_bytes;
  case SN_SAVES_ROWS:
  case SN_SAVES_ROOTS:
    return output_bytes / layer->out.c;
  case SN_SAVES_GROUPS:
    return layer->statistics_bytes / 2;
  case SN_SAVES_INDICES:
    return 2 * output_bytes;
  case SN_SAVES_LOSS: /* PyTorch's mean of squares is a number in a storage as large as the squares */
    return layer->attr->loss == SN_LOSS_MSE ? output_bytes + sizeof(float) : 2 * sizeof(float);
  case SN_SAVES_LRN:
    return index > 0 ? output_bytes : output_bytes / layer->out.c * (layer->out.c + layer->attr->lrn_size - 1);
  }
  return output_bytes;
}
