/* What [SN] prints (Wang et al., "SuperNeurons: Dynamic GPU Memory Management for Training Deep Neural Networks", PPoPP
 * 2018), number by number, and the question to the simulator that each answers. "MB" there means MiB. All on its card,
 * a K40c with 12 GB. Nothing here is fitted: strategies are the same for all networks. */
#include "cli/reproduce/reproduce.h"

#define OFFLOAD "liveness+offload"
#define SPEED   OFFLOAD "+recompute=speed"
#define MEMORY  OFFLOAD "+recompute=memory"
#define COST    OFFLOAD "+recompute=cost"
#define SN      "superneurons"
#define LETTER  "superneurons-paper"

/* Table 1: extra forwards and peaks of AlexNet; of ResNets, whose batch the paper does not print, extra forwards only.
 */
#define RECOMPUTED(net, batch, series, strategy, extra, how, peak)                                                     \
  {"table1", net, batch, series, strategy, SN_EXTRA_FORWARDS, 0, extra}, {                                             \
    "table1", net, batch, series, strategy, SN_PEAK_MIB, how, peak                                                     \
  }
#define T1(net, batch, speed, memory, cost, how, p1, p2, p3)                                                           \
  RECOMPUTED(net, batch, "speed-centric", SPEED, speed, how, p1),                                                      \
      RECOMPUTED(net, batch, "memory-centric", MEMORY, memory, how, p2),                                               \
      RECOMPUTED(net, batch, "cost-aware", COST, cost, how, p3)

#define T2(net, batch, cuda, pool, gain)                                                                               \
  {"table2", net, batch, "cudaMalloc", SN, SN_IMAGES_PER_S, SN_HOW_CUDA, cuda},                                        \
      {"table2", net, batch, "pool", SN, SN_IMAGES_PER_S, 0, pool}, {                                                  \
    "table2", net, batch, "gain", SN, SN_RATIO, 0, gain                                                                \
  }

#define T3(batch, without, with)                                                                                       \
  {"table3", "alexnet", batch, "without cache", OFFLOAD, SN_TRAFFIC_GB, 0, without}, {                                 \
    "table3", "alexnet", batch, "with cache", SN, SN_TRAFFIC_GB, 0, with                                               \
  }

/* Tables 4 and 5: a row of all systems. The last is not the paper's: there any tensor may leave the device. */
#define SYSTEM(table, net, batch, system, quantity, paper)                                                             \
  { table, net, batch, system, system, quantity, 0, paper }
#define SYSTEMS(table, net, batch, quantity, caffe, mxnet, torch, tensorflow, superneurons)                            \
  SYSTEM(table, net, batch, "caffe", quantity, caffe), SYSTEM(table, net, batch, "mxnet", quantity, mxnet),            \
      SYSTEM(table, net, batch, "torch7", quantity, torch),                                                            \
      SYSTEM(table, net, batch, "tensorflow", quantity, tensorflow),                                                   \
      SYSTEM(table, net, batch, LETTER, quantity, superneurons), SYSTEM(table, net, batch, SN, quantity, SN_NO_NUMBER)
#define T5(net, caffe, mxnet, torch, tensorflow, superneurons)                                                         \
  SYSTEMS("table5", net, 0, SN_LARGEST_BATCH, caffe, mxnet, torch, tensorflow, superneurons)

#define FREELY (SN_HOW_ENDLESS | SN_HOW_MOST)
#define F2(net, batch, tensors)                                                                                        \
  {"fig2", net, batch, "tensors", "baseline", SN_TENSORS_GIB, FREELY, tensors},                                        \
      {"fig2", net, batch, "tensors and workspaces", "baseline", SN_NET_GIB, FREELY, SN_NO_NUMBER},                    \
      {"fig2",      net, batch, "no workspace", "liveness", SN_IMAGES_PER_S, SN_HOW_ENDLESS | SN_HOW_NO_WORKSPACE,     \
       SN_NO_NUMBER},                                                                                                  \
      {"fig2", net, batch, "with workspaces", "liveness", SN_IMAGES_PER_S, FREELY, SN_NO_NUMBER}, {                    \
    "fig2", net, batch, "gain", "liveness", SN_RATIO, 0, SN_NO_NUMBER                                                  \
  }

#define F10(series, strategy, live, peak)                                                                              \
  {"fig10", "alexnet", 200, series, strategy, SN_PEAK_MIB, SN_HOW_ENDLESS, peak}, {                                    \
    "fig10", "alexnet", 200, series, strategy, SN_LIVE_TENSORS, SN_HOW_ENDLESS, live                                   \
  }

#define F11(net, batch)                                                                                                \
  {"fig11", net, batch, "with cache", SN, SN_IMAGES_PER_S, 0, SN_NO_NUMBER},                                           \
      {"fig11", net, batch, "without cache", COST, SN_IMAGES_PER_S, 0, SN_NO_NUMBER}, {                                \
    "fig11", net, batch, "without cache / with", COST, SN_RATIO, 0, SN_NO_NUMBER                                       \
  }

#define F12(batch, series, how, speed)                                                                                 \
  { "fig12", "alexnet", batch, series, SN, SN_IMAGES_PER_S, SN_HOW_3GIB | (how), speed }

static const sn_paper_cell cells[] = {
    /* table 1, section 3.4 */
    T1("alexnet", 200, 14, 23, 17, SN_HOW_ENDLESS, 993.018, 886.23, 886.23),
    T1("resnet50", 16, 84, 118, 85, SN_HOW_NOT, 455.125, 401, 401),
    T1("resnet101", 16, 169, 237, 170, SN_HOW_NOT, 455.125, 401, 401),
    /* table 2, section 4.1.2 */
    T2("alexnet", 128, 359.4, 401.6, 1.12), T2("vgg16", 16, 12.1, 14.4, 1.19), T2("inception_v4", 16, 6.77, 10.0, 1.48),
    T2("resnet50", 16, 21.5, 32.9, 1.53), T2("resnet101", 16, 11.3, 18.95, 1.68), T2("resnet152", 16, 7.46, 13.2, 1.77),
    /* table 3, section 4.1.2 */
    T3(256, 2.56, 0), T3(384, 3.72, 0), T3(512, 4.88, 0), T3(640, 6.03, 0), T3(896, 8.35, 0), T3(1024, 9.50, 0.88),
    /* table 4, section 4.2 */
    SYSTEMS("table4", "resnet:n1=6,n2=32,n4=6,n3=", 16, SN_DEEPEST, 148, 480, 152, 592, 1920),
    /* table 5, section 4.2 */
    T5("alexnet", 768, 768, 1024, 1408, 1792), T5("vgg16", 48, 64, 48, 80, 224),
    T5("inception_v4", 16, SN_NO_NUMBER, SN_NO_NUMBER, 64, 240), T5("resnet50", 24, 80, 32, 128, 384),
    T5("resnet101", 16, 48, 16, 80, 256), T5("resnet152", 16, 32, 16, 48, 176),
    /* figure 2, section 2.1: two of its bars are named in the text */
    F2("alexnet", 200, SN_NO_NUMBER), F2("vgg16", 32, SN_NO_NUMBER), F2("inception_v4", 32, 44.3),
    F2("resnet50", 32, SN_NO_NUMBER), F2("resnet101", 32, SN_NO_NUMBER), F2("resnet152", 32, 18.5),
    /* figure 10, section 4.1.1 */
    F10("baseline", "baseline", 36, 2189.437), F10("liveness", "liveness", 17, 1489.355),
    F10("+ offload", OFFLOAD, 9, 1132.155), F10("+ recompute", COST, SN_NO_NUMBER, 886.23),
    /* figure 11, section 4.1.2: the largest loss is named in the text */
    F11("alexnet", 128), F11("vgg16", 32), F11("inception_v4", 32), F11("resnet50", 32), F11("resnet101", 32),
    F11("resnet152", 32),
    /* figure 12, section 4.1.2 */
    F12(100, "no workspace", SN_HOW_NO_WORKSPACE, 203), F12(100, "dynamic workspace", 0, 240),
    F12(300, "no workspace", SN_HOW_NO_WORKSPACE, SN_NO_NUMBER), F12(300, "dynamic workspace", 0, SN_NO_NUMBER)};

const sn_paper_cell *sn_paper_cells(uint32_t *count) {
  *count = sizeof cells / sizeof cells[0];
  return cells;
}

/* "Runtime Concurrency Control and Operation Scheduling for High Performance Neural Network Training" */
#define CORUN .paper = "co-run paper", .gpu = SN_CORUN_DEVICE

static const sn_experiment experiments[] = {
    {.name = "table1",
     .section = "3.4",
     .title = "extra forwards and peak memory by recomputation",
     .notes = "The peaks of the ResNets are printed without a batch, and none from 1 to 64 makes our rules give them.",
     .measure = sn_cells_measure,
     .drawn = SN_EXTRA_FORWARDS},
    {.name = "table2",
     .section = "4.1.2",
     .title = "training speed with cudaMalloc and with the pool",
     .notes = "Five constants of the cost model were fitted to the speeds with the pool, none of them per network.",
     .measure = sn_cells_measure,
     .drawn = SN_IMAGES_PER_S,
     .log_scale = true},
    {.name = "table3",
     .section = "4.1.2",
     .title = "AlexNet: bytes moved with and without the tensor cache",
     .notes =
         "Without the cache: the CONV outputs, out and back; the paper's figure includes transfers that it does not "
         "describe.",
     .measure = sn_cells_measure,
     .drawn = SN_TRAFFIC_GB},
    {.name = "table4",
     .section = "4.2",
     .title = "going deeper: ResNet with n1=6, n2=32, n4=6 at batch 16",
     .notes =
         "Depth 3 (n1 + n2 + n3 + n4) + 2; \"none\": not even n3=1, depth 137, fits. superneurons-paper moves CONV "
         "and FORK outputs only, superneurons any tensor. docs/paper.md explains the exceptions.",
     .measure = sn_cells_measure,
     .drawn = SN_DEEPEST,
     .log_scale = true},
    {.name = "table5",
     .section = "4.2",
     .title = "going wider: the largest batch",
     .notes = "superneurons-paper moves CONV and FORK outputs only, superneurons any tensor. The paper's batches are "
              "rounded down to its grid; ours are exact. docs/paper.md explains the exceptions.",
     .measure = sn_cells_measure,
     .drawn = SN_LARGEST_BATCH,
     .log_scale = true},
    {.name = "fig2",
     .section = "2.1",
     .title = "memory of whole networks, speed with and without workspaces",
     .notes = "Only two of the paper's bars have their numbers in the text. Speeds are of a device with enough memory.",
     .measure = sn_cells_measure,
     .drawn = SN_TENSORS_GIB,
     .axis = "memory of the whole network (GiB)"},
    {.name = "fig8",
     .section = "3.3.1",
     .title = "shares of layer types in time and memory",
     .notes = "Memory of outputs and gradients; time of forward and backward passes. The paper prints no numbers.",
     .stacked = true,
     .measure = sn_shares_measure,
     .drawn = SN_SHARE_PERCENT},
    {.name = "fig10",
     .section = "4.1.1",
     .title = "AlexNet, batch 200: memory by technique",
     .notes = "-o draws the memory of every step.",
     .measure = sn_cells_measure,
     .step_curves = true},
    {.name = "fig11",
     .section = "4.1.2",
     .title = "speed without the tensor cache",
     .notes = "The paper names the largest loss, 33.33 %: a ratio of 0.667.",
     .measure = sn_cells_measure,
     .drawn = SN_RATIO,
     .axis = "images/s without the cache (with it: 1)"},
    {.name = "fig12",
     .section = "4.1.2",
     .title = "AlexNet under 3 GB: workspaces of the CONVs",
     .notes =
         "Workspace given at each CONV step, and that of the fastest algorithms. The paper prints two speeds without "
         "their batch.",
     .measure = sn_workspaces_measure,
     .drawn = SN_WORKSPACE_MIB},
    {.name = "fig13",
     .section = "4.2",
     .title = "all tensors of the largest batches",
     .notes = "Tensors as the baseline would hold them: ours at our largest batch, the paper's at its (both of table "
              "5). The "
              "paper prints one number, of memory with workspaces: SuperNeurons' largest is 19.8 times Caffe's.",
     .measure = sn_models_measure,
     .drawn = SN_TENSORS_GIB,
     .log_scale = true},
    {.name = "singa",
     .section = "Model, benchmark on a single node",
     .title = "memory of ResNet-50 without and with the graph",
     .notes = "Simulated only. layer and model without the graph are one policy. Which algorithms cuDNN chose is not "
              "known: ours are the fastest of the cost model. Fitted is one number a batch, the sum of workspaces, "
              "from the batch's four figures; nothing else is. docs/baselines.md explains the difference.",
     .paper = "SINGA documentation",
     .gpu = SN_SINGA_CARD,
     .measure = sn_singa_measure,
     .drawn = SN_DEVICE_MIB},
    {.name = "corun-table1",
     .section = "II",
     .title = "a step with inter x intra threads, all operations alike",
     .notes =
         "Fitted: the profile's constants are made for this table, II, III and VI. Memory is not limited, as in the "
         "paper. DCGAN's step is three passes.",
     CORUN,
     .measure = sn_corun_table1,
     .drawn = SN_MS},
    {.name = "corun-table2",
     .section = "II",
     .title = "convolutions of three sizes: how many threads, how long",
     .notes =
         "Fitted: the paper does not give the kernels, so each row's a + w/p + c p is put through its own time and "
         "count of threads. Its loss follows where a would else be below 0.",
     CORUN,
     .measure = sn_corun_table2,
     .drawn = SN_MS},
    {.name = "corun-table3",
     .section = "II",
     .title = "FILTER and DATA of one convolution at once",
     .notes = "The times alone are those of corun-table2, the slowing by sharing memory and cores is the profile's, "
              "which is fitted to this table and others. The paper's first line is not the sum of its table II.",
     CORUN,
     .measure = sn_corun_table3,
     .drawn = SN_MS},
    {.name = "corun-table5",
     .section = "III",
     .title = "accuracy of climbing by its interval",
     .notes =
         "Predicted: no constant was fitted to this table. The geometric interval is not in the paper. The loss is "
         "what the best count found takes longer than the best of all, the mean over operations.",
     CORUN,
     .measure = sn_corun_table5,
     .drawn = SN_ACCURACY_PERCENT},
    {.name = "corun-table6",
     .section = "IV",
     .title = "operations by kind: all cores, and each kind its own count",
     .notes =
         "Fitted for ResNet-50 and DCGAN, predicted for Inception-v3. Only what both have is compared: "
         "TensorFlow's conversions, copies and the parts of its batch normalization have no operations of ours, and "
         "its DECONVs are Conv2DBackpropInput.",
     CORUN,
     .measure = sn_corun_table6,
     .drawn = SN_MS,
     .log_scale = true},
    {.name = "corun-fig3",
     .section = "IV",
     .title = "what each strategy gains",
     .notes =
         "Predicted: no constant was fitted to this figure. Memory is not limited, as in the paper. path is not the "
         "paper's.",
     CORUN,
     .measure = sn_corun_figure3,
     .drawn = SN_RATIO,
     .axis = "speed-up"},
    {.name = "corun-fig4",
     .section = "IV",
     .title = "operations at once, the mean over starts and ends",
     .notes = "Predicted: no constant was fitted to this figure. path is not the paper's.",
     CORUN,
     .measure = sn_corun_figure4,
     .drawn = SN_OPS_AT_ONCE},
};

const sn_experiment *sn_experiments(uint32_t *count) {
  *count = sizeof experiments / sizeof experiments[0];
  return experiments;
}
