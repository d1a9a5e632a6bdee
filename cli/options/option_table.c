/* The table of options: what each is called, which commands take it, what help says of it, how its value is read
 * (cli/options/option_values.c). The parser of the command line (cli/options/options.c), help, completions and the manual
 * page all come from it. Rows of sweeps and drawings stand in option_rows_sweep.h. */
#include "cli/options/options.h"

#include "cli/options/option_rows_sweep.h"
#include "cli/options/option_values.h"

static const sn_option options[] = {
    {"max", "batch|depth|image|sequence", 0, SN_CMD_FIT, "What to find",
     "The largest that fits: batch; depth (n3 of resnet, layers of llama and gpt2, the repeat of a JSON network); "
     "image (height and width); sequence (tokens).",
     sn__parse_max, offsetof(sn_args, max)},
    {"min", "memory|gpus", 0, SN_CMD_FIT, "What to find",
     "memory: the least usable memory of a device with which it runs, to the block of 1 KiB. gpus: the fewest GPUs "
     "that "
     "share it by the scheme of --parallel, 1, 2, 4, 8 and whole nodes up to --nodes or 1,024 GPUs.",
     sn__parse_min, offsetof(sn_args, min)},
    {"which", "gpu", 0, SN_CMD_FIT, "What to find",
     "gpu: every GPU of `snsim list gpus`, and a --gpu FILE, ranked: does it fit, with what to spare, how fast; with "
     "--price and --samples by what an epoch costs.",
     sn__parse_which, offsetof(sn_args, which)},
    {"net", "NET|FILE", 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE | SN_CMD_GRAPH |
         SN_CMD_MEMCOST | SN_CMD_THREADS | SN_CMD_SHOW_NET,
     "What to train",
     "The network: a name of `snsim list nets`, a family with its parameters (resnet:n1=3,n2=4,n3=6,n4=3), or the "
     "path of a JSON or ONNX file or a recording (one that holds a '/' or ends in .json, .onnx, .rec or .rec.gz); or "
     "FILE.py:NAME, a model in Python.",
     sn__parse_text, offsetof(sn_args, net)},
    {"input", "SIZES,..", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_RECORD, "What to train",
     "Of a model in Python, --net FILE.py:NAME: an input of one row, as 3,224,224, or 128:int64 for whole numbers; "
     "given again for a second one. NAME is then a module's class, or a function that builds a model; without --input "
     "one that returns models, optimizers and a step. It is recorded once, in your own python3, and kept beside the "
     "database.",
     sn__parse_list, offsetof(sn_args, inputs)},
    {"net", "NET|FILE.json", 0, SN_CMD_CHECK | SN_CMD_PLAY, "What to train",
     "The plan's network, where that is not one of `snsim list nets`.", sn__parse_text, offsetof(sn_args, net)},
    {"net", "FILE.json", 0, SN_CMD_REPORT | SN_CMD_TRACE | SN_CMD_EXPORT, "What to train",
     "The run's network, where its file lies elsewhere by now.", sn__parse_text, offsetof(sn_args, net)},
    {"batch", "N", 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE | SN_CMD_MEMCOST |
         SN_CMD_THREADS,
     "What to train", "Images per iteration.", sn__parse_size, offsetof(sn_args, batch)},
    {"batch", "N", 0, SN_CMD_DTR, "What to replay", "Of a recording. Default: the batch that it was recorded with.",
     sn__parse_size, offsetof(sn_args, batch)},
    {"gpu", "GPU|FILE.json", 0, SN_CMD_DTR, "What to replay",
     "Of a recording: the GPU that its operations' times are of.", sn__parse_gpu, 0},
    {"batch", "N", 0, SN_CMD_GRAPH | SN_CMD_SHOW_NET, "What to train", "Images per iteration. Default: 1.",
     sn__parse_size, offsetof(sn_args, batch)},
    {"units", "GLOB,..", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SHOW_NET | SN_CMD_GRAPH,
     "What to train",
     "Of a recording: the modules that recompute=units runs again, by their paths, `layer[1-3].*` (as a shell's *, ? "
     "and classes); the outermost ones that match. Default: those that a Sequential or ModuleList has several of. "
     "`--net 'mine.rec:units=layer?.*'` says the same, and in a sweep's --nets.",
     sn__parse_text, offsetof(sn_args, units)},
    {"sequence", "N", 0, SN_CMD_SHOW_NET, "What to train", "Tokens of a sequence, instead of the network's own number.",
     sn__parse_size, offsetof(sn_args, sequence)},
    {"dialect", "superneurons|explicit|pytorch|pytorch-1.7|singa", 0, SN_CMD_GRAPH, "How",
     "superneurons (default): forks copy, gradients of ACT, LRN, JOIN and SOFTMAX are in place. explicit: MXNet's "
     "graph, where values have many readers, gradients are summed, and operators may take over an operand's bytes. "
     "pytorch: eager PyTorch 2; pytorch-1.7 adds gradients that meet into a third tensor. singa: SINGA's graph, "
     "kernel by kernel, without the workspaces of convolutions, which are a GPU's; simulated only.",
     sn__parse_dialect, offsetof(sn_args, dialect)},
    {"order", "route|post|serial|bfs", 0, SN_CMD_GRAPH, "How",
     "route (default): forward from the input on, backward the other way round. post: depth first from the loss and "
     "from each parameter's gradient, for explicit. serial, bfs: as SINGA buffers its operations, which is its route, "
     "and breadth first, for singa.",
     sn__parse_order, offsetof(sn_args, order)},
    {"inference", NULL, 0, SN_CMD_SHOW_NET, "How",
     "Shows a network that can only be run, as that of an ONNX file whose batch norms were folded into convolutions.",
     sn__parse_switch, offsetof(sn_args, options.iteration.inference)},
    {"inference", NULL, 0, SN_CMD_GRAPH, "How", "The network is only run, not trained: forward operations alone.",
     sn__parse_switch, offsetof(sn_args, options.iteration.inference)},
    SN__OPTION_ROWS_OF_SWEEPS,
    {"image", "N|HxW", 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP | SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE |
         SN_CMD_MEMCOST | SN_CMD_THREADS | SN_CMD_SHOW_NET | SN_CMD_GRAPH,
     "What to train",
     "Height and width of the images, one number where they are equal, instead of the network's own. An FC that sees "
     "the whole image (AlexNet, VGG) then has other parameters, which is said; behind a global POOL it has not.",
     sn__parse_image, offsetof(sn_args, image)},
    {"samples", "N", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE, "What to train",
     "Samples of an epoch (1281167 of ImageNet): its time is told, and with --price its cost. Of fit: with --which "
     "gpu.",
     sn__parse_samples, offsetof(sn_args, samples)},
    {"loss", "LOSS", 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP | SN_CMD_SHOW_NET | SN_CMD_GRAPH | SN_CMD_RUN |
         SN_CMD_VALIDATE,
     "What to train",
     "Behind an ONNX file's first output: cross_entropy, of each position where there are several, "
     "cross_entropy_fp32, whose logits are made float32 first, or mse. Default: cross_entropy. `--net "
     "mine.onnx:loss=mse` says the same, and in a sweep's --nets of one file. Of GPT-2, Llama and their like: "
     "cross_entropy_fp32, as Hugging Face's models given labels have it (the default), or cross_entropy.",
     sn__parse_text, offsetof(sn_args, loss)},
    {"sequence", "N", 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP | SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE |
         SN_CMD_GRAPH,
     "What to train",
     "Tokens of a sequence, instead of the network's own number: of gpt2, bert_base, llama and their like.",
     sn__parse_size, offsetof(sn_args, sequence)},
    {"interval", "N|geometric", 0,
     SN_CMD_THREADS | SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "For +corun=.., profiling tries 1, 1 + N, 1 + 2N, .. threads up to all cores, a training step each; geometric: "
     "about sqrt 2 times as many each time. Default: 4.",
     sn__parse_interval, offsetof(sn_args, options.corun.interval)},
    {"match-range", "N", 0, SN_CMD_MEMCOST, "How",
     "How many times larger or smaller the next use of a region of memory may be. 0: no region is used again. "
     "Default: 16, MXNet's.",
     sn__parse_match_range, offsetof(sn_args, match_range)},
    {"colors", "N|ancestors", 0, SN_CMD_MEMCOST, "How",
     "Only operations of one colour share a region: the longest paths have a colour each, the rest the last. Default: "
     "1. ancestors: only an operation that runs behind the other in any case; networks of up to 20,000 operations.",
     sn__parse_colours, offsetof(sn_args, colours)},
    {"gpu", "GPU|FILE.json", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_MEMCOST, "Where",
     "The GPU: a name of `snsim list gpus`, as people write it too (4090, A100-80GB), the path of a JSON file, or "
     "manycore:cores=N,slots=S,tile=T, an estimate of so many cores. Default: what $SNSIM_GPU names, else this "
     "machine's, where its driver tells, else rtx4090.",
     sn__parse_gpu, 0},
    {"gpu", "GPU|FILE.json", 0, SN_CMD_THREADS, "Where",
     "A device made of cores: knl7250, manycore:cores=N,slots=S,tile=T (an estimate), the path of a JSON file with "
     "\"cores\", or a machine whose teams were measured (`snsim calibrate --threads`): cpu.",
     sn__parse_gpu, 0},
    {"gpu", "GPU|FILE.json", 0, SN_CMD_PLAY, "Where", "The GPU that it is played on. Default: the plan's own.",
     sn__parse_gpu, 0},
    {"gpu", "FILE.json", 0, SN_CMD_REPORT | SN_CMD_TRACE | SN_CMD_EXPORT, "Where",
     "The profile of the run's GPU, where that came from a file: the database holds only its name.", sn__parse_gpu, 0},
    {"gpu", "NAME", 0, SN_CMD_VALIDATE | SN_CMD_CALIBRATE, "Where",
     "The name under which this machine's measurements are kept. Default: the name of the back end.", sn__parse_gpu, 0},
    {"price", "FILE", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE, "Where",
     "With --samples: what cards cost an hour, in lines as \"rtx4090, 0.44 USD\"; fit --which gpu then ranks by cost.",
     sn__parse_text, offsetof(sn_args, price)},
    {"costs", "auto|model|measured", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_VALIDATE | SN_CMD_THREADS,
     "Where",
     "Where times come from: auto (default: what was measured of the device by `snsim calibrate`, formulas for the "
     "rest), model (formulas alone), measured (an error where nothing was measured).",
     sn__parse_costs, offsetof(sn_args, costs)},
    {"memory", "SIZE", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_PLAY, "Where",
     "Usable memory of the device instead of its own: 8GiB, 11439MiB, 12GB; the i makes it a power of 1024.",
     sn__parse_bytes, offsetof(sn_args, memory)},
    {"context", "SIZE", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_PLAY, "Where",
     "Memory that driver and libraries take, whatever --modules says; 0 is allowed.", sn__parse_bytes_or_0,
     offsetof(sn_args, context)},
    {"modules", "lazy|eager", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_PLAY, "Where",
     "When CUDA loads kernels in PyTorch: as they are used (lazy, default since CUDA 11.7: the context that users "
     "report), or all at once (eager: 1 GiB more).",
     sn__parse_modules, offsetof(sn_args, eager_modules)},
    {"host-memory", "SIZE", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP, "Where",
     "Memory that the host has for tensors sent out, of a node for all its GPUs: a plan that needs more does not fit. "
     "Default: what the GPU's "
     "profile says; without that, it is shown and not limited.",
     sn__parse_bytes, offsetof(sn_args, host_memory)},
    {"host-us", "US", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE, "Where",
     "Microseconds that PyTorch's host takes for an operation, Python and dispatcher, which is the time of small "
     "batches; 0: the device waits for nobody. Default: what the GPU's profile says, 10.",
     sn__parse_condition, 0},
    {"pool", "SIZE", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_RUN | SN_CMD_VALIDATE, "Where",
     "Size of the pool for tensors and workspace, instead of all that context and parameters leave.", sn__parse_pool,
     offsetof(sn_args, options.pool_bytes)},
    {"for", "pytorch|superneurons|mxnet|singa|all", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP,
     "How",
     "Whose runtime trains: its strategies are tried where --strategy names none, and the verdict is its. Default: "
     "pytorch; `snsim --net ..` shows SuperNeurons' rows below.",
     sn__parse_for, offsetof(sn_args, runtime)},
    {"for", "pytorch|superneurons|mxnet|singa|all", 0, SN_CMD_PLOT | SN_CMD_REPORT, "How",
     "Of a run: the strategies of that runtime alone, and its verdict. Default: all that it has.", sn__parse_for,
     offsetof(sn_args, runtime)},
    {"margin", "SIZE|P%", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP, "Where",
     "Usable memory to keep free, for a larger context, fragmentation by other allocations and what a framework adds: "
     "a size, or a share of the usable memory (5%). Default: none.",
     sn__parse_margin, 0},
    {"external", "host|peer|remote|disk", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE, "Where",
     "Where offloaded tensors go: host (default), peer (a GPU under the same switch), remote (over RDMA), disk (of the "
     "host; 2 GB/s, unless the profile says otherwise).",
     sn__parse_condition, 0},
    {"external", "host|disk", 0, SN_CMD_RUN | SN_CMD_VALIDATE, "Where",
     "Where tensors go that are sent out: host (default), or on the CPU disk: a file in $TMPDIR, or /var/tmp, which is "
     "gone when the training is.",
     sn__parse_condition, 0},
    {"shared-link", NULL, 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP, "Where",
     "Copies out and in share the bandwidth of one direction.", sn__parse_switch,
     offsetof(sn_args, options.shared_link)},
    {"strategy", "S,..", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_SWEEP | SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "A strategy of `snsim list strategies`, or several parted by commas; may be given several times. Default: the "
     "13 of SuperNeurons; simulate and fit ask about pytorch as well. With --freeze, --lora or --precision amp-..: "
     "PyTorch's four.",
     sn__parse_strategy, 0},
    {"strategy", "S,..", 0, SN_CMD_ADVISE, "How",
     "Strategies to choose among, parted by commas; may be given several times. Default: baseline, and liveness with "
     "every offload and recompute.",
     sn__parse_strategy, 0},
    {"strategy", "S,..", 0, SN_CMD_PLOT, "How", "Strategies to draw, parted by commas; may be given several times.",
     sn__parse_strategy, 0},
    {"strategy", "S,..", 0, SN_CMD_DIFF, "How", "Strategies to compare, parted by commas; may be given several times.",
     sn__parse_strategy, 0},
    {"strategy", "S,..", 0, SN_CMD_REPORT, "How",
     "Strategies to report on, parted by commas; may be given several times. Default: all that the run has.",
     sn__parse_strategy, 0},
    {"strategy", "S,..", 0, SN_CMD_EXPORT, "How",
     "Of --table ops: strategies, parted by commas; may be given several times. Default: all that the run has.",
     sn__parse_strategy, 0},
    {"strategy", "S", 0, SN_CMD_TRACE, "How",
     "The strategy to trace. Default: the one that the run's verdict is of, else the fastest that fits, else the one "
     "that needs the least.",
     sn__parse_strategy, 0},
    {"workspace", "none|dynamic|max", 0, SN_CMD_SIMULATE | SN_CMD_FIT, "How",
     "Convolution workspace: none, dynamic (the fastest algorithm that fits in what is left at that step; default), "
     "max (the fastest, whether it fits or not).",
     sn__parse_condition, 0},
    {"workspace", "none|dynamic|max", 0, SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "GPU: convolution workspace none (default: every strategy then uses the same algorithms and gives the same bits), "
     "dynamic or max. A CPU has one algorithm.",
     sn__parse_condition, 0},
    {"allocator", "pool|cuda|pytorch|pytorch-expandable", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE, "How",
     "Who hands out memory: pool (default; PyTorch's rows have PyTorch's), cuda (cudaMalloc and cudaFree for every "
     "tensor, with what they cost), pytorch (its caching allocator), or pytorch-expandable (that with "
     "expandable_segments:True).",
     sn__parse_condition, 0},
    {"placement", "packed|first-fit", 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP | SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "How tensors and workspaces get their addresses: packed (default: together, once all is known), or first-fit (one "
     "after the other, as it comes; published systems always).",
     sn__parse_placement, 0},
    {"budget", "serial|SIZE|any", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "Memory of tensors that +corun=.. may take: serial (default: no more than one operation after another), a size, "
     "or any.",
     sn__parse_list, offsetof(sn_args, budgets)},
    {"heuristic", "lru|size|local|msps|dtr|eq,..", 0, SN_CMD_DTR | SN_CMD_PLOT, "How",
     "What is evicted first: lru (not read for longest), size (largest), local (cheapest for its size and age), msps "
     "(cheapest for its size, with what it is made of), dtr (for size and age, with what was evicted around it), eq "
     "(the same by classes, as DTR does in PyTorch); several parted by commas, or several times. Default: all. Of "
     "plot: with --kind dtr.",
     sn__parse_list, offsetof(sn_args, heuristics)},
    {"budget", "SHARE|SIZE,..", 0, SN_CMD_DTR | SN_CMD_PLOT, "How",
     "The memory there is: a share of what the log takes without a limit (0.5; 1 is all of it), or a size (2GiB, or "
     "bytes); several parted by commas, or several times. Default: 1.0, 0.9, .., 0.1. Of plot: with --kind dtr.",
     sn__parse_list, offsetof(sn_args, budgets)},
    {"sharing", "fenced|free", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "Which memory +corun=.. uses again: fenced (default: any, and waits for who had it), or free (only what nobody "
     "has to wait for).",
     sn__parse_sharing, offsetof(sn_args, options.corun.reuse)},
    {"backend", "cpu|cuda", 0, SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE, "Where",
     "What trains: cpu (default), or cuda, which needs an NVIDIA GPU with cuDNN and cuBLAS.", sn__parse_backend,
     offsetof(sn_args, backend)},
    {"data", "FILE", 0, SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE, "What to train",
     "Trains on a labelled image set instead of random images: MNIST's IDX files, NumPy's .npy or the form of "
     "docs/data.md.",
     sn__parse_text, offsetof(sn_args, data)},
    {"load-weights", "FILE", 0, SN_CMD_RUN, "What to train",
     "Starts from these weights instead of random ones: a file of --save-weights, or any in the form of safetensors "
     "with the network's names (docs/weights.md).",
     sn__parse_text, offsetof(sn_args, files.load)},
    {"iterations", "N", 0, SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE, "How",
     "Training iterations, 1 to 16777216. Default: 3.", sn__parse_size, offsetof(sn_args, iterations)},
    {"warmup", "N", 0, SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "How many of the iterations, the first, do not count for times: fewer than --iterations, 0 is allowed. Default: "
     "1.",
     sn__parse_warmup, 0},
    {"optimizer", "momentum|sgd|adam|adamw|rmsprop|adagrad", 0, SN_CMD_RECORD, "How",
     "With --input or --config: what updates the parameters. Default: sgd.", sn__parse_condition, 0},
    {"precision", "fp32|amp-bf16|amp-fp16", 0, SN_CMD_RECORD, "How", "With --input or --config: autocast.",
     sn__parse_condition, 0},
    {"inference", NULL, 0, SN_CMD_RECORD, "How", "With --input or --config: the forward pass alone.", sn__parse_switch,
     offsetof(sn_args, options.iteration.inference)},
    {"batch", "N", 0, SN_CMD_RECORD, "How", "Recorded at this batch alone. Default: for any.", sn__parse_size,
     offsetof(sn_args, batch)},
    {"assume", "PART", 0, SN_CMD_RECORD, "How",
     "Which part of elements is true where only values would tell, which a recording does not have. Default: 0.5.",
     sn__parse_text, offsetof(sn_args, assume)},
    {"hf", "CLASS", 0, SN_CMD_RECORD, "What to train",
     "With --config: a class of transformers, such as GPT2LMHeadModel or AutoModelForCausalLM. Default: the one that "
     "the config names.",
     sn__parse_text, offsetof(sn_args, hf)},
    {"config", "FILE.json", 0, SN_CMD_RECORD, "What to train",
     "The config.json of a model of transformers, or its folder: that model is recorded, without weights and without a "
     "network. It reads tokens, --sequence of them.",
     sn__parse_text, offsetof(sn_args, config)},
    {"sequence", "N", 0, SN_CMD_RECORD, "What to train", "With --config: tokens of a row.", sn__parse_size,
     offsetof(sn_args, sequence)},
    {"check", NULL, 0, SN_CMD_RECORD, "How",
     "With --input: also runs a step on the CPU with real tensors, and compares what was called.", sn__parse_switch,
     offsetof(sn_args, check)},
    {"optimizer", "momentum|sgd|adam|adamw|adam8bit|adamw8bit|rmsprop|adagrad|adafactor|lion", 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP | SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE |
         SN_CMD_THREADS,
     "How",
     "What updates parameters: momentum (default), which keeps one value for each parameter; sgd, none; adam or adamw, "
     "two; adam8bit or adamw8bit, two of one byte each, as bitsandbytes has them; rmsprop, adagrad and lion, one; "
     "adafactor, a row and a column of each matrix. Behind it may stand ,impl=foreach, ,impl=fused or ,impl=loop: how "
     "PyTorch does it. Without it is foreach (of adafactor and lion loop); adam and adamw of transformers' networks "
     "are "
     "fused, as Hugging Face's Trainer has them. A GPU trains by the first two, a CPU by the first four.",
     sn__parse_condition, 0},
    {"accumulate", "N", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP | SN_CMD_RUN | SN_CMD_VALIDATE,
     "How",
     "Batches that an update is made of, one after the other, their gradients added up: a batch of N times --batch for "
     "the memory of one, and of the gradients. Default: 1.",
     sn__parse_accumulate, offsetof(sn_args, options.iteration.accumulate)},
    {"precision", "fp32|tf32|tf32-conv|bf16|fp16|amp-bf16|amp-fp16|bf16-master", 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP | SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_GRAPH |
         SN_CMD_MEMCOST,
     "How",
     "Bytes of what is trained: four (fp32; tf32 with tensor cores; tf32-conv with tensor cores for convolutions "
     "alone, where the GPU has them), two (bf16, fp16), or by operation, as PyTorch's autocast has it (amp-bf16, "
     "amp-fp16), or two with weights, gradients and states of four beside them (bf16-master; under fsdp shards have "
     "four), both of PyTorch's strategies. Published systems have four. Default: tf32-conv, as PyTorch starts, of "
     "questions about PyTorch; else fp32.",
     sn__parse_condition, 0},
    {"gpus", "N", 0, SN_CMD_ADVISE, "Several GPUs",
     "How to split over so many GPUs of the cluster: every tp, fsdp and dp whose product they are, where an update has "
     "several batches every pp too, blocks run again or not, and 1, 2, 4 .. images at once of a GPU, as far as they "
     "fit; "
     "fastest first.",
     sn__parse_list, offsetof(sn_args, axes[SN_AXIS_GPUS])},
    {"global-batch", "N", 0, SN_CMD_ADVISE, "Several GPUs",
     "With --gpus: images an update of all GPUs. Each way then accumulates as many batches as that takes.",
     sn__parse_size, offsetof(sn_args, global_batch)},
    {"parallel", "KEY=N,..", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP, "Several GPUs",
     "On several GPUs, and what the fullest of them holds: fsdp=N, PyTorch's fully_shard() of each block (with "
     "reshard=yes|no|N, keep-last=yes, prefetch=K, reduce=bf16); dp=N, DistributedDataParallel (bucket=25MiB, "
     "view=yes); both, HSDP; tp=N, products of decoders divided (loss=whole, gathered=again, sequence=whole); pp=N, a "
     "pipeline "
     "(schedule=gpipe|1f1b|zb-h1|interleaved:N, stages=8,8,7,9: blocks of each). Without the number that fit --min "
     "gpus looks "
     "for: fsdp,prefetch=2. docs/parallel.md.",
     sn__parse_scheme, 0},
    {"cluster", "CLUSTER|FILE.json", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP, "Several GPUs",
     "Of several GPUs: which they are and how fast they speak to each other (`snsim list clusters`). Default: the "
     "known one of this GPU, else PCIe is assumed.",
     sn__parse_cluster, 0},
    {"nodes", "N", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE, "Several GPUs",
     "Of the cluster. Default: as many as are filled.", sn__parse_nodes, offsetof(sn_args, nodes)},
    {"freeze", "GLOB,..", 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP | SN_CMD_GRAPH | SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "Layers that are not trained, by their names, such as 'layer[12]*': no gradients, no optimizer state, and no "
     "backward ahead of the first that is. May be repeated. Of PyTorch's strategies.",
     sn__parse_freeze, offsetof(sn_args, freeze)},
    {"quantize", "nf4", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP | SN_CMD_GRAPH | SN_CMD_SHOW_NET,
     "How",
     "QLoRA: of a network with --lora, weights that are not trained have 4 bits, as bitsandbytes' NF4 with double "
     "quantisation; each product makes them anew in its own width.",
     sn__parse_quantize, offsetof(sn_args, quantize)},
    {"lora", "R|R:GLOB,..", 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP | SN_CMD_GRAPH | SN_CMD_SHOW_NET | SN_CMD_RUN |
         SN_CMD_VALIDATE,
     "How",
     "LoRA: adapters of rank R beside all FCs but the network's output, or beside those of these names, such as "
     "8:'*q_proj,*v_proj'; 8,dropout=0.05 drops of what they read. They alone are trained, unless --freeze says what "
     "is not. --net NET+lora=R:GLOB,.. is the same. Of PyTorch's strategies.",
     sn__parse_lora, offsetof(sn_args, lora)},
    {"inference", NULL, 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP, "How",
     "The network is only run, not trained: forward operations alone, no gradients, no optimizer, nothing kept for "
     "backward.",
     sn__parse_switch, offsetof(sn_args, options.iteration.inference)},
    {"learning-rate", "X", 0, SN_CMD_RUN | SN_CMD_VALIDATE, "How", "Step size of gradient descent. Default: 0.001.",
     sn__parse_rate, offsetof(sn_args, hyper.learning_rate)},
    {"momentum", "X", 0, SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "Share of the last step that is taken again, below 1; of --optimizer momentum. Default: 0.9.", sn__parse_share,
     offsetof(sn_args, hyper.momentum)},
    {"weight-decay", "X", 0, SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "Pull of all parameters towards 0, below 1. Default: 0.0005.", sn__parse_share,
     offsetof(sn_args, hyper.weight_decay)},
    {"seed", "N", 0, SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "What weights, dropout, synthetic images and the order of real ones are drawn from. Default: 1.", sn__parse_seed,
     offsetof(sn_args, hyper.seed)},
    {"init", "small-end|he|pytorch", 0, SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "What weights are drawn as. small-end (default): by He's rule, the last layer ahead of each SOFTMAX a tenth of "
     "it, "
     "so that the first loss is near ln(classes). he: all by He's rule. pytorch: as PyTorch's defaults, biases too.",
     sn__parse_init, 0},
    {"threads", "N|N,N,..", 0, SN_CMD_CALIBRATE, "How",
     "Threads of the kernels, 1 to 4096. Default: as many as there are processors. Several counts, 1,2,4: operations "
     "are also measured on teams of so many processors, of 1, half of the largest and the largest in any case, and how "
     "much teams side by side slow each other.",
     sn__parse_thread_counts, 0},
    {"threads", "N", 0, SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "Threads of the kernels, 1 to 4096. Default: as many as there are processors.", sn__parse_thread_counts, 0},
    {"deterministic", NULL, 0, SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE, "How",
     "GPU: only algorithms that give the same bits every time. The CPU's always do.", sn__parse_switch,
     offsetof(sn_args, deterministic)},
    {"tf32", NULL, 0, SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE, "How",
     "GPU: allow TF32 tensor cores, which round to 10 bits.", sn__parse_switch, offsetof(sn_args, tf32)},
    {"jobs", "N", 0, SN_CMD_SWEEP, "How",
     "Threads that compute. Default: as many as there are processors; under mpirun one for each rank.", sn__parse_jobs,
     offsetof(sn_args, jobs)},
    {"check", NULL, 0, SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "Watch every byte of the pool: what is released or belongs to nobody must not be read or written.",
     sn__parse_switch, offsetof(sn_args, check)},
    {"capacity", "SIZE", 0, SN_CMD_PACK, "How",
     "The memory there is, in bytes or with a unit (1MiB): the search is over as soon as the blocks fit. Default: as "
     "little as can be found.",
     sn__parse_capacity, offsetof(sn_args, capacity)},
    {"moves", "N", 0, SN_CMD_PACK, "How",
     "Moves of the search behind the eight orders; 0 for none. Default: 5000. Where blocks are many each takes long, "
     "and the search ends sooner.",
     sn__parse_moves, offsetof(sn_args, moves)},
    {"exact", NULL, 0, SN_CMD_PACK, "How",
     "Behind the moves search until nothing can be better, or for --capacity until the blocks fit or it is proved that "
     "they cannot; Ctrl-C or SIGTERM ends it with the best until then, printed and written.",
     sn__parse_switch, offsetof(sn_args, exact)},
    {"nodes", "N", 0, SN_CMD_PACK, "How",
     "With --exact: at most so many blocks are placed on trial. A node takes the longer the more blocks hang together "
     "in time, so the default is 10000000 for up to 316 of them and 10^12 divided by their square for more, 111111 "
     "for 3000: a minute or two of processor time at most. A terminal shows how far it is.",
     sn__parse_nodes, offsetof(sn_args, nodes)},
    {"steps", NULL, 0, SN_CMD_SIMULATE | SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_SHOW | SN_CMD_PLAY, "What to print",
     "Also a row for every step, strategy by strategy.", sn__parse_switch, offsetof(sn_args, steps)},
    {"explain", NULL, 0, SN_CMD_SIMULATE | SN_CMD_SHOW, "What to print",
     "Also the tensors that make up each peak, largest first: who made them, how long they have been there, what would "
     "remove them; and what sets the pool and would lower it.",
     sn__parse_switch, offsetof(sn_args, explain)},
    {"explain", NULL, 0, SN_CMD_DIFF, "What to print",
     "Also the tensors that came to each peak, went from it, grew or shrank, the largest change first.",
     sn__parse_switch, offsetof(sn_args, explain)},
    {"kind", "steps|live|device|breakdown|timeline|pool|cores|corun|map|dtr", 0, SN_CMD_PLOT, "What to print",
     "What to draw. steps (default): memory of tensors over the steps. live: live tensors only. device: "
     "everything on the device over the steps, against its memory. breakdown: time and peak by type of layer, a bar "
     "per strategy. timeline: what the lanes do and the memory, over time. pool: where "
     "each tensor lies, over the steps. cores: of a strategy with +corun=.., which operation is on which cores when. "
     "corun: how many operations run at once. map: of a sweep, what fits and how fast by batch and strategy. dtr: of "
     "logs instead of runs, the overhead of recomputing over the budget.",
     sn__parse_kind, offsetof(sn_args, kind)},
    {"kind", "timeline|pool|device", 0, SN_CMD_PLAY, "What to print",
     "What -o draws. timeline (default): what the lanes do and the memory, over time. pool: where each tensor lies, "
     "over the steps. device: everything on the device over the steps, against its memory.",
     sn__parse_kind, offsetof(sn_args, kind)},
    {"live", NULL, 0, SN_CMD_PLOT, "What to print",
     "With --kind steps: live tensors too, dashed, on an axis of their own.", sn__parse_switch,
     offsetof(sn_args, with_live)},
    {"table", "results|steps|peaks|tensors|ops", 0, SN_CMD_EXPORT, "What to print",
     "Which table: a row per strategy (results, the default), per step and strategy, per tensor of each strategy's "
     "peak, per tensor of the network, per operation that a strategy executes (ops: when, on which lane and cores).",
     sn__parse_text, offsetof(sn_args, table)},
    {"snapshot", "FILE", 0, SN_CMD_EXPORT, "What to print",
     "Of a run of a recording: what PyTorch's allocator does in it, in a file that pytorch.org/memory_viz opens.",
     sn__parse_text, offsetof(sn_args, snapshot)},
    {"explain", NULL, 0, SN_CMD_FIT, "What to print",
     "The tensors that stop the next value for every strategy, not only for the best.", sn__parse_switch,
     offsetof(sn_args, explain)},
    {"json", NULL, 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP | SN_CMD_REPRODUCE | SN_CMD_RUN | SN_CMD_VALIDATE |
         SN_CMD_CALIBRATE | SN_CMD_LIST | SN_CMD_SHOW | SN_CMD_DIFF | SN_CMD_PACK | SN_CMD_GRAPH | SN_CMD_MEMCOST |
         SN_CMD_THREADS | SN_CMD_DTR | SN_CMD_CHECK | SN_CMD_PLAY,
     "What to print", "One JSON object instead of tables.", sn__parse_switch, offsetof(sn_args, json)},
    {"json", NULL, 0, SN_CMD_SHOW_NET, "What to print", "A network file instead of the table.", sn__parse_switch,
     offsetof(sn_args, json)},
    {"csv", NULL, 0, SN_CMD_SWEEP | SN_CMD_SHOW, "What to print", "Of a sweep: every point as a line of CSV.",
     sn__parse_switch, offsetof(sn_args, csv)},
    {"csv", NULL, 0, SN_CMD_DTR, "What to print", "A line of CSV for every log, heuristic and budget.",
     sn__parse_switch, offsetof(sn_args, csv)},
    {"trace", "FILE", 0, SN_CMD_RUN | SN_CMD_VALIDATE, "What to print",
     "Writes what really happened in the last iteration of the one strategy asked for as trace events (docs/trace.md); "
     "- is standard output.",
     sn__parse_text, offsetof(sn_args, trace)},
    {"save-weights", "FILE", 0, SN_CMD_RUN, "What to print",
     "Writes the weights behind the last iteration in the form of safetensors (docs/weights.md). All strategies give "
     "the same; the first one's are written. Ctrl-C ends such a training behind its current iteration, whose weights "
     "are written; a second one at once, with nothing written.",
     sn__parse_text, offsetof(sn_args, files.save)},
    {"save-gradients", "FILE", 0, SN_CMD_RUN, "What to print",
     "Writes the gradients of the last iteration in the same way.", sn__parse_text, offsetof(sn_args, files.gradients)},
    {"plan", "FILE", 0, SN_CMD_SIMULATE, "What to print",
     "Writes the plan of the one strategy asked for as JSON; - puts it on standard output in place of the table. "
     "Of a pipeline one a stage: plan.json stands for plan.0.json, plan.1.json, ..",
     sn__parse_text, offsetof(sn_args, plan)},
    {"output", "FILE", 'o',
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_SWEEP | SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE | SN_CMD_LIST |
         SN_CMD_SHOW | SN_CMD_DIFF | SN_CMD_EXPORT | SN_CMD_COMPLETIONS | SN_CMD_HELP | SN_CMD_MEMCOST | SN_CMD_DTR,
     "What to print", "Writes to FILE instead of standard output.", sn__parse_text, offsetof(sn_args, output)},
    {"output", "FILE", 'o', SN_CMD_RECORD, "What to print",
     "The recording, packed where it ends in .gz. Default: NAME.rec.", sn__parse_text, offsetof(sn_args, output)},
    {"output", "FILE", 'o', SN_CMD_PACK, "What to print",
     "Writes the blocks with their offsets as CSV; - puts them on standard output in place of the summary.",
     sn__parse_text, offsetof(sn_args, output)},
    {"output", "FILE", 'o', SN_CMD_GRAPH, "What to print",
     "Writes to FILE instead of standard output: a graph for Graphviz where it ends in .dot, JSON where it ends in "
     ".json, else the table.",
     sn__parse_text, offsetof(sn_args, output)},
    {"output", "FILE", 'o', SN_CMD_SHOW_NET, "What to print",
     "Writes to FILE instead of standard output: a network file where it ends in .json, else the table.",
     sn__parse_text, offsetof(sn_args, output)},
    {"output", "FILE", 'o', SN_CMD_PLOT, "What to print",
     "The picture: FILE ends in .png, .svg or .pdf. Without it the picture is text in the terminal.", sn__parse_text,
     offsetof(sn_args, output)},
    {"output", "FILE", 'o', SN_CMD_REPRODUCE | SN_CMD_THREADS | SN_CMD_PLAY, "What to print",
     "Also draws it: FILE ends in .png, .svg or .pdf.", sn__parse_text, offsetof(sn_args, output)},
    {"output", "FILE", 'o', SN_CMD_REPORT | SN_CMD_TRACE, "What to print",
     "Where the page or trace goes; - is standard output.", sn__parse_text, offsetof(sn_args, output)},
    {"front", NULL, 0, SN_CMD_ADVISE, "What to print",
     "Instead: the rules that keep, drop and send out tensors, without workspaces, each beside the least time that "
     "re-running takes in its memory, and that least time over all memories; -o draws them.",
     sn__parse_switch, offsetof(sn_args, front)},
    {"man", NULL, 0, SN_CMD_HELP, "What to print", "The manual page, as roff: snsim help --man | man -l -.",
     sn__parse_switch, offsetof(sn_args, man)},
    {"output", "FILE", 'o', SN_CMD_ADVISE, "What to print",
     "Also draws memory against time: every combination, and the front; FILE ends in .png, .svg or .pdf.",
     sn__parse_text, offsetof(sn_args, output)},
    {"color", "auto|always|never", 0, SN_CMD_ALL, "What to print",
     "auto (default: on a terminal, unless NO_COLOR is set), always, never.", sn__parse_color,
     offsetof(sn_args, color)},
    {"db", "FILE", 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP | SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE |
         SN_CMD_LIST | SN_CMD_SHOW | SN_CMD_PLOT | SN_CMD_REPORT | SN_CMD_TRACE | SN_CMD_DIFF | SN_CMD_EXPORT |
         SN_CMD_THREADS,
     "Stored runs", "The database, instead of $XDG_DATA_HOME/snsim/runs.db (~/.local/share/snsim/runs.db).",
     sn__parse_text, offsetof(sn_args, db)},
    {"name", "TEXT", 0, SN_CMD_SIMULATE | SN_CMD_RUN | SN_CMD_VALIDATE, "Stored runs",
     "A name for the run, by which it can be asked for: snsim show TEXT. Of several of one name the newest is meant.",
     sn__parse_text, offsetof(sn_args, name)},
    {"name", "TEXT", 0, SN_CMD_RECORD, "How", "What the recording is called. Default: NAME.", sn__parse_text,
     offsetof(sn_args, name)},
    {"name", "TEXT", 0, SN_CMD_SHOW, "Stored runs", "Lists only runs with this in their name.", sn__parse_text,
     offsetof(sn_args, name)},
    {"net", "NET|FILE", 0, SN_CMD_SHOW, "Stored runs", "Lists only runs with this in the name of their network.",
     sn__parse_text, offsetof(sn_args, net)},
    {"gpu", "GPU", 0, SN_CMD_SHOW, "Stored runs", "Lists only runs on this GPU, by its name.", sn__parse_gpu, 0},
    {"strategy", "S", 0, SN_CMD_SHOW, "Stored runs", "Lists only runs with this strategy.", sn__parse_strategy, 0},
    {"delete", NULL, 0, SN_CMD_SHOW, "Stored runs", "Deletes the run or sweep instead of printing it.",
     sn__parse_switch, offsetof(sn_args, remove)},
    {"no-db", NULL, 0, SN_CMD_SIMULATE | SN_CMD_RUN | SN_CMD_VALIDATE, "Stored runs",
     "Stores nothing. What was measured (`snsim calibrate`) is read all the same; --costs model leaves it out.",
     sn__parse_switch, offsetof(sn_args, no_db)},
    {"no-db", NULL, 0, SN_CMD_SWEEP, "Stored runs", "Stores nothing.", sn__parse_switch, offsetof(sn_args, no_db)},
    {"new", NULL, 0, SN_CMD_SWEEP, "Stored runs",
     "Begins a sweep of its own, where one of the same points would be gone on with.", sn__parse_switch,
     offsetof(sn_args, fresh)},
    {"no-db", NULL, 0, SN_CMD_FIT | SN_CMD_ADVISE, "Stored runs",
     "Changes nothing: this command reads measured times (not with --costs model) and stores nothing.",
     sn__parse_switch, offsetof(sn_args, no_db)},
    {"help", NULL, 'h', SN_CMD_ALL, "About", "Help on the command.", sn__parse_switch, offsetof(sn_args, help)},
    {"version", NULL, 0, SN_CMD_ALL, "About", "The version of snsim.", sn__parse_switch, offsetof(sn_args, version)},
};

const sn_option *sn_option_table(uint32_t *count) {
  *count = sizeof options / sizeof options[0];
  return options;
}
