/* The table of commands: what `snsim help` says of each. The first is the one that runs where none is named. */
#include "cli/options/options.h"

#include "base/text.h"
#include "cli/options/synonyms.h"

#include <string.h>

static const sn_command commands[] = {
    {"simulate", "snsim --net NAME --batch N [options]", "plan and simulate one training iteration",
     "Plans one training iteration of a network on a GPU under one or several memory strategies, proves every plan "
     "safe, "
     "simulates it and prints one row per strategy. The word \"simulate\" may be left out.\n"
     "The table: \"fits\": the device has enough memory. \"peak MiB\": the most that functional tensors (layer outputs "
     "and gradients) take at any moment; \"FORK copies\", of branching networks: the share of it that is copies for "
     "the "
     "branches; \"live\": the most of them at any moment of that step. \"device GiB\": what this plan takes of the "
     "device in all: "
     "CUDA context, parameters, their gradients, what the optimizer keeps, input, and the pool for tensors and "
     "workspace; the "
     "cache and dynamic workspaces take what there is; of PyTorch's rows its context and what its allocator reserves, "
     "or "
     "would if it had room, where it does not fit. \"needs the least\", below the table: the least memory with "
     "which a strategy runs, as `snsim fit --min memory` finds it. \"work GiB\": the largest convolution "
     "workspace. \"frag %\": the share of the pool that is never in use at one moment; \"pool set at step\", the "
     "last column: the step that makes the pool as large as it is, which need not be that of the peak, and why: its "
     "tensors, a workspace, or holes of more than 1 % between tensors (--explain says what would lower it). \"out/in "
     "GiB\": bytes copied to "
     "the external pool and back; \"host GiB\": memory of the host that this takes (--host-memory limits it). "
     "\"cache\": hits, misses and evictions of the tensor cache. \"extra fwd\": layers "
     "whose "
     "forward is run again. \"iter ms\": time of one iteration; \"stall ms\": the part of it in which computing waits "
     "for a copy; \"alloc ms\", only where it is not nothing: waiting for cudaMalloc and cudaFree. \"images /s\": the "
     "batch divided by the time of an iteration. A dash stands for "
     "nothing, and for the speed of what does not fit. A terminal that is too narrow gets fewer columns, with a line "
     "that says which are left out; COLUMNS overrules its width.\n"
     "Every run is kept in a database, for `snsim show` and `snsim plot`. The exit status is 1 where none of the asked "
     "strategies fits; the message then names one that does, or a batch that does, found by simulation.",
     "snsim --net inception_v4 --batch 64\n"
     "snsim --net resnet152 --batch 32 --gpu rtx3090 --strategy superneurons\n"
     "snsim --net resnet:n1=6,n2=32,n3=80,n4=6 --batch 16 --json --no-db\n"
     "snsim --net alexnet --batch 200 --strategy liveness --explain\n"
     "snsim --net vit_b_16 --batch 256 --precision amp-bf16 --samples 1281167 --price prices.csv\n"
     "snsim --net alexnet --batch 200 --strategy liveness+offload --plan plan.json\n"
     "snsim --net ./mine.json --batch 8 --gpu ./my-gpu.json --memory 8GiB",
     NULL, SN_CMD_SIMULATE, sn_cli_simulate},
    {"fit", "snsim fit --max KNOB|--min memory|--min gpus|--which gpu --net NAME [options]",
     "how much fits, and what stops more",
     "With --max, the largest batch, depth, image or sequence with which a network fits on a GPU: that one fits, the "
     "next does not, and every value between it and the first whose tensors alone do not fit was looked at as well, "
     "since the holes of a pool can make one value fail where a larger one fits. That takes a plan, but not where "
     "first "
     "fit has room for the tensors or a cache for the largest step, nor where what a cache may not send out has none. "
     "With --min memory, the least memory of a device for a "
     "network "
     "and a batch. With --min gpus, how few GPUs do, by the scheme of --parallel (fsdp unless it says), and what the "
     "next "
     "smaller number lacks; --batch is what one gets. With --which gpu, every known GPU, ranked by speed, or with "
     "--price and --samples by what an epoch "
     "costs; "
     "\"rank\" 1-3: the first three are alike, as their bands overlap (docs/truth.md). All plans are "
     "proved safe.\n"
     "The table of --max: what the largest needs on the device, the least with which the next would run, images per "
     "second at the "
     "largest, and the step at which the next does not fit. \"(holes)\": the tensors would fit there, but not between "
     "those that are already placed; \"(workspace)\": a convolution's; \"(resident)\": parameters and input leave "
     "nothing; \"(host memory)\": what is sent out takes more of the host's than there is. Below it stand the tensors "
     "of that step and what would take them away.\n"
     "The depth is n3 of \"resnet\", the layers of \"llama\" and \"gpt2\" and the repeat of a JSON network; where it "
     "has several, "
     "the "
     "one with \"depth\": true. Where patches, windows or what is halved have to fill an image, only such sizes are "
     "tried. The exit status is 1 where nothing fits; the message then says what would.",
     "snsim fit --max batch --net resnet152 --gpu k40c\n"
     "snsim fit --min gpus --net llama:7b --sequence 4096 --batch 1 --cluster h100x8 --precision bf16-master\n"
     "snsim fit --max depth --net resnet:n1=6,n2=32,n4=6 --batch 16 --strategy superneurons\n"
     "snsim fit --max image --net resnet50 --batch 8 --memory 8GiB --margin 5% --explain\n"
     "snsim fit --max sequence --net llama:layers=16,hidden=2048,heads=16,ffn=5632 --batch 1 --gpu rtx4090\n"
     "snsim fit --min memory --net vgg16 --batch 64 --json\n"
     "snsim fit --which gpu --net inception_v4 --batch 64 --strategy liveness\n"
     "snsim fit --which gpu --net resnet50 --batch 256 --precision amp-bf16 --price prices.csv --samples 1281167",
     NULL, SN_CMD_FIT, sn_cli_fit},
    {"advise", "snsim advise --net NAME --batch N [options]", "the cheapest way to make it fit",
     "Tries every combination of strategy and convolution workspace for a network, a batch and a GPU (--strategy "
     "limits "
     "the choice), and names the fastest that fits. Then the Pareto front: the combinations for which no other is as "
     "fast "
     "with less memory, from the fastest to the leanest, and what each step along it saves and costs.\n"
     "The cache and dynamic workspaces take what memory there is. So combinations with these are also tried with less, "
     "down "
     "to the least with which they run (snsim fit --min memory); \"given MiB\" is that limit, for --memory. \"over "
     "MiB\" is "
     "how far a row is above what no plan goes below: what is resident, and the tensors of the largest step.\n"
     "With --margin part of the usable memory is kept free: the context grows with the libraries that are loaded, "
     "other "
     "allocations fragment the memory, and frameworks keep buffers of their own. The output says so.\n"
     "Last the batch in parts that run one after the other and add up their gradients, with one update behind them: "
     "what "
     "--batch and --accumulate ask for that, what it takes and what it costs against the whole batch in one.\n"
     "With --gpus N it is how so many GPUs may share an iteration: all ways, by tokens/s or images/s of all GPUs. "
     "--batch "
     "is then the most that one gets at once. \"*\": the fastest; \"o\": no other is as fast with less memory; \"x\": "
     "too "
     "large.",
     "snsim advise --gpus 64 --net llama:7b --sequence 4096 --batch 8 --cluster h100x8 --precision bf16-master\n"
     "snsim advise --net resnet152 --batch 32 --gpu k40c\n"
     "snsim advise --net inception_v4 --batch 64 --margin 5% -o front.png\n"
     "snsim advise --net vgg16 --batch 128 --memory 8GiB --json\n"
     "snsim advise --net tv_resnet50 --batch 256 --gpu v100_16 --for pytorch",
     NULL, SN_CMD_ADVISE, sn_cli_advise},
    {"sweep", "snsim sweep --nets LIST --batches LIST [options], or snsim sweep SWEEP",
     "many points at once: networks x batches x GPUs x strategies",
     "Simulates every combination of the lists, a point each, on all processors, and stores every point as soon as "
     "it is finished. An interrupted sweep (Ctrl-C, a kill, a power cut) goes on where it stopped: give the same "
     "lists again, or its number. What does not fit is a result; a point that cannot be computed is stored with "
     "the reason and does not stop the others.\n"
     "The table: one row for every network, GPU, option and batch; \"fit\": how many strategies fit; \"fastest "
     "that fits\" with its speed and the device memory its plan takes; \"least GiB\": the least memory with which one "
     "of "
     "the strategies runs, as fit --min memory finds it. --csv and "
     "--json give every point. snsim plot sweep:N draws memory and speed over the batch or another axis.\n"
     "Under mpirun, rank 0 hands out the points and alone writes the database; the other ranks compute, on other "
     "machines too. The exit status is 1 where nothing fits at all.",
     "snsim sweep --nets alexnet,vgg16 --batches 16:256:16 --gpus k40c,v100_32\n"
     "snsim sweep --nets resnet50 --batches 8:512:x2 --strategy baseline --strategy superneurons --csv -o r50.csv\n"
     "snsim sweep --grid grid.json --db shared.db\n"
     "snsim sweep 3\n"
     "mpirun -n 8 snsim sweep --grid grid.json",
     "[SWEEP]", SN_CMD_SWEEP, sn_cli_sweep},
    {"reproduce", "snsim reproduce TABLE|FIGURE [--json] [-o FILE]", "papers' tables and figures beside ours",
     "Simulates what a table or figure of the SuperNeurons paper (PPoPP 2018) shows and prints the paper's numbers "
     "beside the simulator's, with the error of each; a dash stands for a number that there is not. "
     "Tables: table1 (recomputation), table2 (memory pool), table3 (tensor cache), table4 (going deeper) and "
     "table5 (going wider). Figures: fig2, fig8, fig10, fig11, fig12 and fig13. "
     "singa: the memory of ResNet-50 that the documentation of Apache SINGA prints, without and with its graph; "
     "simulated only. corun-table1, 2, 3, 5, 6, corun-fig3 and corun-fig4, of a paper on runtime concurrency control: "
     "how many threads operations want on a machine of 68 cores, and what running them side by side gains; simulated "
     "only.\n"
     "With -o FILE it is also drawn. Needs gnuplot.",
     "snsim reproduce table5\n"
     "snsim reproduce fig10 -o fig10.svg\n"
     "snsim reproduce table2 --json\n"
     "snsim reproduce singa",
     "table1|table2|table3|table4|table5|fig2|fig8|fig10|fig11|fig12|fig13|singa|corun-table1|corun-table2|corun-"
     "table3|corun-table5|corun-table6|corun-fig3|corun-fig4",
     SN_CMD_REPRODUCE, sn_cli_reproduce},
    {"run", "snsim run --net NAME --batch N | PLAN.json [options]", "train for real, by the plans",
     "Trains a network on the CPU, or a GPU, by obeying the plans of one or several strategies, each from the same "
     "start: every "
     "tensor and scratch byte lies in a pool of exactly the planned size, at its planned address, and copies run on "
     "threads of their own behind the plan's fences. Images and labels are drawn from the seed, or come "
     "from --data.\n"
     "The table: the pool and its highest byte that was used; memory of the device in use; the most live tensors; "
     "bytes "
     "copied per iteration; extra forwards; time of an iteration (median, without the first or those of --warmup, "
     "with the fastest and the slowest), of which the compute lane "
     "waited for copies; loss of the last iteration; \"right %\": images of the last tenth of the iterations whose "
     "most "
     "likely class was their label, before they were trained on; \"result\": whether losses, gradients and parameters "
     "are equal to the first row's to the bit, as they must be. Strategies that cannot be trained, for want of memory "
     "or of a plan, are "
     "named below it with the reason. Ctrl-C ends it after the current step and shows what was measured; with "
     "--save-weights after the current iteration, whose weights are kept.\n"
     "A CPU needs no convolution workspaces; its plans hold oneDNN's scratch instead, and differ from a GPU's in "
     "that.\n"
     "PLAN.json: a plan from elsewhere (snsim help check), which is proved first and then obeyed. Network, batch and "
     "optimizer are the plan's; what kernels need beyond its workspaces lies behind its pool. --strategy adds others "
     "to compare with. Nothing is stored.",
     "snsim run --net lenet --batch 64 --iterations 20\n"
     "snsim run --net lenet --batch 64 --iterations 200 --data digits-images.idx --learning-rate 0.01\n"
     "snsim run --net alexnet --batch 8 --strategy baseline --strategy superneurons --pool 60MiB --check\n"
     "snsim run plan.json --strategy baseline",
     "[FILE]", SN_CMD_RUN, sn_cli_run},
    {"validate", "snsim validate --net NAME --batch N | PLAN.json [options]",
     "train for real and compare with the prediction",
     "Trains as `snsim run` does, and prints what was predicted for the very same plans beside what was measured: "
     "bytes "
     "of pool and device, live tensors, bytes copied and how fast, time of an iteration and of its stalls, and whether "
     "the result is equal to that of the first strategy to the bit. One table is of bytes, one of times; under them "
     "stand the largest errors. Prediction and measurement are stored; `snsim plot` draws one over the other.\n"
     "\"device MiB\" is memory in use beyond what was in use before: on the CPU the growth of the resident set without "
     "the external pool. Times are predicted where the machine is calibrated (`snsim calibrate`), on a GPU also where "
     "--gpu names a known one; a dash stands for what is not known. Ctrl-C ends it after the current step and keeps "
     "what was measured.",
     "snsim validate --net resnet50 --batch 4\n"
     "snsim validate --net alexnet --batch 16 --iterations 5 --steps --strategy superneurons\n"
     "snsim validate --net resnet50 --batch 32 --backend cuda --deterministic --json",
     "[FILE]", SN_CMD_VALIDATE, sn_cli_validate},
    {"calibrate", "snsim calibrate --net NAME --batch N [options]", "measure this machine, for exact predictions",
     "Measures this machine while it trains a network: the time of every step by operator, shape and pass (and "
     "convolution algorithm, where there are several), what kernels need as workspace, and copies both ways, alone and "
     "together. The figures are stored under the name of the device (--gpu, else the name of the back end), its "
     "hardware "
     "and its libraries; another network calibrated later is added.\n"
     "From then on `snsim --gpu cpu` simulates this machine: steps of known shapes take their measured time, others "
     "what measured shapes next to theirs say. The table shows, by operator and pass, what was measured over what the "
     "formulas of the cost model say, and by what factor shapes miss each other where they are predicted so.\n"
     "With several counts for --threads, operations are also measured on teams of so many of a CPU's processors, as "
     "strategies with +corun=.. run them; `snsim --gpu cpu --strategy liveness+corun=path` then plans with these "
     "times.",
     "snsim calibrate --net resnet50 --batch 4 --iterations 10\n"
     "snsim --net resnet101 --batch 4 --gpu cpu\n"
     "snsim calibrate --net resnet_cifar:n=2 --batch 16 --threads 1,2\n"
     "snsim calibrate --net resnet50 --batch 32 --backend cuda --gpu h200",
     NULL, SN_CMD_CALIBRATE, sn_cli_calibrate},
    {"list", "snsim list nets|gpus|clusters|strategies", "what can be asked for",
     "Lists the networks, GPUs, clusters or strategies that snsim knows. Networks and GPUs of your own come from JSON "
     "files: "
     "give "
     "their path to --net and --gpu.",
     "snsim list nets\n"
     "snsim list gpus --json",
     "nets|gpus|clusters|strategies", SN_CMD_LIST, sn_cli_list},
    {"show", "snsim show [RUN] [options]", "stored runs, or one of them again",
     "Without RUN lists the stored runs, newest first; --name, --net, --gpu and --strategy list some of them. With "
     "RUN, a "
     "number, a name or \"last\", prints that run again, byte for byte as it was printed first, but for the heading's "
     "remark that a GPU nobody named is the default: which one it was is stored, not who chose it; and but for "
     "--samples and --price, which are not stored. With --delete it is "
     "deleted. \"sweeps\" lists the sweeps, \"sweep:3\" or \"sweep:last\" prints one; "
     "\"calibrations\" lists what `snsim calibrate` has measured.",
     "snsim show\n"
     "snsim show 12 --explain\n"
     "snsim show --net vgg16 --strategy superneurons\n"
     "snsim show 12 --delete\n"
     "snsim show last --json\n"
     "snsim show sweep:3 --csv",
     "[RUN|SWEEP|sweeps|calibrations]", SN_CMD_SHOW, sn_cli_show},
    {"plot", "snsim plot [RUN].. [--kind KIND] [-o FILE] [--strategy S]...", "draw stored runs",
     "Draws a stored run; RUN is a number, a name or \"last\" (the default). Without -o the picture is drawn as text "
     "in the "
     "terminal. Needs gnuplot, but for the text of all kinds except steps and live.\n"
     "steps: functional-tensor memory for every step, several strategies in one picture, each named at its peak; "
     "--live "
     "adds live tensors on a right axis. Without --strategy these are all that the run has, where they are six at "
     "most, "
     "else of baseline, liveness, liveness+offload, liveness+offload+recompute=cost and the fastest that fits those "
     "that it has. Several RUNs, of "
     "other "
     "batch sizes or GPUs for instance, are drawn over each other, without --strategy the first and the last of "
     "those.\n"
     "live: live tensors over the steps, of one run or several.\n"
     "device: everything on the device over the steps of one strategy, in one stack: context, parameters, gradients, "
     "momentum, tensors by operator, workspace and holes, against the GPU's memory, the peak named.\n"
     "breakdown: a bar per strategy for the time of an iteration and one for the peak, by type of layer, "
     "operations side by side sharing the time in equal parts, collectives left out; without --strategy all that the "
     "run has.\n"
     "timeline: what the compute lane, the two copy lanes and those of collectives do over the time of an iteration, "
     "or all compute lanes of "
     "+corun=.., and the memory it takes. pool: the addresses of tensors and workspace over the steps, of PyTorch's "
     "strategies in the segments of its caching allocator. device, timeline and pool draw one strategy, without "
     "--strategy the one that the run's verdict is of, else the fastest that fits, of equally fast ones the one that "
     "needs least.\n"
     "cores: of one strategy with +corun=.., without --strategy the fastest that fits, a rectangle for every "
     "operation: its cores and its time, second hardware threads hatched. corun: how many operations run at once, over "
     "their starts and ends, of up to six such strategies.\n"
     "A measured "
     "run is shown as it was executed; for device, timeline, pool, cores and corun any other is simulated again, and "
     "must come out "
     "as it was. A network or GPU profile from a file must be there again; see --net and --gpu.\n"
     "RUN \"sweep:3\" draws a sweep: memory and images per second over the batch, the pool, the memory, the image or "
     "the "
     "GPU, the first of these that has several values or the one that --x names, for one value of each other axis; "
     "of more than six strategies the usual ones, unless --strategy names them. "
     "With "
     "limits of the pool memory is the pool's, else the device's. With "
     "--kind map a row per strategy and a column per value: images per second, or that it does not fit.\n"
     "With --kind dtr the operands are logs in the form of DTR's, which are replayed (snsim help dtr): the overhead of "
     "recomputing over the budget, a curve per --heuristic, a panel per log.",
     "snsim plot\n"
     "snsim plot 12 -o memory.svg\n"
     "snsim plot 11 12 -o batches.png --strategy superneurons\n"
     "snsim plot 12 --kind timeline -o lanes.pdf --strategy liveness+offload\n"
     "snsim plot 13 --kind cores -o cores.png --strategy liveness+corun=path\n"
     "snsim plot sweep:3 -o sweep.png --net vgg16 --gpu v100_32\n"
     "snsim plot sweep:3 -o pools.png --x pool --batch 128\n"
     "snsim plot --kind dtr resnet32.log -o dtr.png",
     "[RUN|SWEEP]..", SN_CMD_PLOT, sn_cli_plot},
    {"report", "snsim report [RUN] -o FILE [--strategy S]...", "a stored run or sweep as a page to hand on",
     "Writes one HTML page that holds everything and opens from disk, without a network: whether and how the network "
     "fits, everything on the device against its memory, all strategies in a table that sorts, memory over the steps "
     "with the tensors of "
     "each step, what runs when on which lane, the map of the pool, and what makes the peak. RUN is a number or "
     "\"last\" "
     "(the default).\n"
     "A measured run is shown as it was executed. Any other is simulated again, and the command stops where the "
     "outcome is not the one "
     "stored. A network or GPU profile from a file must be there again; see --net and --gpu.\n"
     "RUN \"sweep:3\" makes the page of a sweep, of what is stored: for every network and GPU the largest batch that "
     "fits and the most images per second, memory and speed over the batch for every strategy, and all points in a "
     "table that sorts and filters.",
     "snsim report -o report.html\n"
     "snsim report 12 -o report.html --strategy baseline --strategy superneurons\n"
     "snsim report 12 -o report.html --gpu ./my-gpu.json\n"
     "snsim report sweep:3 -o sweep.html",
     "[RUN|SWEEP]", SN_CMD_REPORT, sn_cli_report},
    {"trace", "snsim trace [RUN] -o FILE [--strategy S]", "what runs when, for Perfetto or chrome://tracing",
     "Writes an iteration of one strategy of a stored run as trace events: computing, copies and stalls on "
     "their lanes, memory and live tensors over time, arrows from what makes a tensor to its copy out and from its "
     "copy in to its first use. RUN is a number, a name or \"last\" (the default).\n"
     "A measured run is shown as it was executed. Any other is simulated again, and the command stops where the "
     "outcome is not the one "
     "stored. A network or GPU profile from a file must be there again; see --net and --gpu.",
     "snsim trace -o trace.json\n"
     "snsim trace 12 -o trace.json --strategy superneurons",
     "[RUN]", SN_CMD_TRACE, sn_cli_trace},
    {"diff", "snsim diff RUN RUN [options]", "what changed between two stored runs",
     "Compares two stored runs, each a number, a name or \"last\": the question that was asked, what every strategy "
     "needs and "
     "takes, and why its peak moved: tensors that came to the peak, went from it, grew or shrank, with their bytes. "
     "Strategies that only one run has are named.",
     "snsim diff 11 12\n"
     "snsim diff 11 last --strategy liveness --explain\n"
     "snsim diff 11 12 --json",
     "RUN RUN", SN_CMD_DIFF, sn_cli_diff},
    {"export", "snsim export [RUN] [--table NAME] [-o FILE] [--snapshot FILE]", "a stored run as CSV",
     "Writes a table of a stored run as CSV: a header with the units in the names, exact whole numbers, true and "
     "false, every row with the run's number (docs/store.md). RUN is a number, a name or \"last\" (the default). "
     "Sweeps: snsim show sweep:3 --csv.\n"
     "ops: when each operation runs, on which lane, and with +corun=.. on which cores. A measured run is played back; "
     "any "
     "other is simulated again, and must come out as it was. A network or GPU profile from a file must be there again; "
     "see --net and --gpu.",
     "snsim export -o results.csv\n"
     "snsim export 12 --table steps -o steps.csv\n"
     "snsim export 13 --table ops -o ops.csv --strategy liveness+corun=path\n"
     "snsim export last --snapshot predicted.pickle",
     "[RUN]", SN_CMD_EXPORT, sn_cli_export},
    {"dtr", "snsim dtr LOG|FILE.rec.. [--heuristic H].. [--budget SHARE|SIZE]..", "DTR's logs under budgets of memory",
     "Replays training steps that DTR's authors recorded (Dynamic Tensor Rematerialization, ICLR 2021), or one of your "
     "own in that form (docs/dtr.md), or recordings of PyTorch (docs/record.md): whenever the next operation's results "
     "do not fit into the budget, the tensor "
     "with "
     "the least score is evicted, and made again when somebody reads it. The figures are those of DTR's own "
     "simulator.\n"
     "\"overhead\": time over the time without a limit. \"evictions\": for want of memory. \"evaluations\": scores "
     "that were looked at. \"status\": ok, out_of_memory (nothing was left to evict), or thrash (what was made again "
     "took longer than the step itself); both end the run, and the figures are of what happened until then.\n"
     "snsim plot --kind dtr draws overhead over budget.",
     "snsim dtr resnet32.log\n"
     "snsim dtr resnet32.log unet.log --heuristic eq,lru --budget 0.5 --budget 2GiB\n"
     "snsim dtr *.log --json",
     "FILE..", SN_CMD_DTR, sn_cli_dtr},
    {"check", "snsim check PLAN.json.. [--net FILE]", "a plan from elsewhere: is it right for every timing",
     "Reads a plan of one training iteration, another planner's, one written by hand, or one of snsim's own (--plan), "
     "in the form of docs/plan-format.md, and proves that it is right: every step runs once and finds the values that "
     "it needs, accesses of the same bytes are ordered by fences, and nothing lies where something else still lives. "
     "What is wrong is told with the line, the instruction and the rule that it breaks (order, values, fences, cores, "
     "memory); the exit status then is 3. FILE - is standard input, here and where else a command reads one plan or "
     "list of blocks.\n"
     "Of several GPUs the plans of all stages of a pipeline, or of several ranks, are proved together: that what is "
     "sent is received, that all of a communicator have the same collectives in the same order, and that nobody waits "
     "for ever (rule match).\n"
     "The plan names its network; where that is not one of `snsim list nets`, --net FILE gives it. --json prints one "
     "object: ok, file, instruction, rule, message.",
     "snsim --net alexnet --batch 200 --strategy liveness+offload --plan plan.json --no-db\n"
     "snsim check plan.json\n"
     "snsim check mine.json --net ./net.json --json\n"
     "snsim check plan.0.json plan.1.json plan.2.json plan.3.json",
     "FILE..", SN_CMD_CHECK, sn_cli_check},
    {"play", "snsim play PLAN.json [--gpu GPU] [-o FILE]", "a plan from elsewhere: what it takes, drawn",
     "Checks a plan as `snsim check` does, then plays it on the model of a GPU: the row that `snsim` prints for its "
     "own "
     "plans (snsim help simulate), or with --json the run. Addresses and the order of all are the plan's; only the "
     "time "
     "that each step and copy takes is the GPU's. A convolution runs the algorithm that the plan names, or where the "
     "GPU has it not, the fastest for which the plan's workspace is enough. Without --gpu it is the plan's GPU with "
     "the "
     "plan's memory. The exit status is 1 where the plan does not fit.\n"
     "With -o FILE it is drawn as well, as --kind says.",
     "snsim play plan.json\n"
     "snsim play plan.json --gpu v100_16 -o lanes.png\n"
     "snsim play plan.json --kind pool -o pool.svg",
     "FILE", SN_CMD_PLAY, sn_cli_play},
    {"pack", "snsim pack FILE.csv [--capacity SIZE] [--moves N] [--exact [--nodes N]] [-o OUT.csv]",
     "addresses for blocks of memory whose lifetimes are known",
     "Packs blocks of memory, each with a size and the time from which to which it lives, into as little memory as can "
     "be "
     "found; blocks that live at the same time must not overlap. FILE has the format of MiniMalloc: CSV, its first "
     "line "
     "names the columns id, lower, upper and size in any order; a block lives from lower to before upper.\n"
     "The largest sum of bytes that live at one time is a lower bound. Where a packing reaches it, nothing can be "
     "better, "
     "and the output says so; where none does, the true optimum lies between the two, and --exact searches for it. "
     "With --capacity the exit status is "
     "1 where the blocks were not fitted in. Same blocks, same offsets.",
     "snsim pack blocks.csv\n"
     "snsim pack blocks.csv --capacity 1048576 -o placed.csv\n"
     "snsim pack blocks.csv --exact\n"
     "snsim pack blocks.csv --moves 100000 --json",
     "FILE", SN_CMD_PACK, sn_cli_pack},
    {"show-net", "snsim show-net --net NAME [options]", "a network's layers",
     "Prints the layers of a network: what each makes of one image, its parameters, its multiply-adds in a forward of "
     "the batch, and the bytes that eager PyTorch keeps of it for backward; what is written in place stands with whose "
     "bytes it takes.\n"
     "--json writes any network as a network file, to start from: snsim show-net --net resnet50 -o mine.json, then "
     "snsim --net ./mine.json --batch 32.",
     "snsim show-net --net lenet\n"
     "snsim show-net --net gpt2 --sequence 512 --batch 4\n"
     "snsim show-net --net resnet50 -o mine.json",
     NULL, SN_CMD_SHOW_NET, sn_cli_show_net},
    {"graph", "snsim graph --net NAME [options]", "what an iteration does, before any strategy",
     "Prints the operations of one training iteration in the order in which they run: what each reads and makes, how "
     "large "
     "that is, and whose bytes it may take over (where those are used for the last time). Which operations there are "
     "is a "
     "matter of the framework: --dialect chooses one. Strategies plan what stands here.\n"
     "As a picture, with Graphviz: snsim graph --net lenet -o lenet.dot; dot -Tsvg lenet.dot -o lenet.svg.",
     "snsim graph --net lenet\n"
     "snsim graph --net resnet50 --batch 32 --dialect explicit --order post --json\n"
     "snsim graph --net ./mine.json --dialect explicit -o mine.dot",
     NULL, SN_CMD_GRAPH, sn_cli_graph},
    {"memcost", "snsim memcost --net NAME --batch N [options]", "what tensors take in MXNet, by how they share memory",
     "Plans the memory of one training iteration by the rules of MXNet 1.2.1, before anything runs, five times: none: "
     "every tensor for itself; inplace: results lie in operands whose bytes are used for the last time; sharing: "
     "memory nobody needs any more is used again for something of a like size; both; forward_only: both, without a "
     "backward pass. Counted are outputs, gradients and what is saved for backward; parameters, their gradients, the "
     "batch and labels are not. The graph is that of snsim graph --dialect explicit --order post.\n"
     "Sharing makes operations wait for each other that could run side by side: the critical path is the time of an "
     "iteration with as many lanes as it can use, once with each tensor in memory of its own, once as shared. "
     "--colors shares less for a shorter path.",
     "snsim memcost --net resnet50 --batch 32\n"
     "snsim memcost --net inception_v4 --batch 32 --colors 4 --gpu v100_32\n"
     "snsim memcost --net ./mine.json --batch 8 --colors ancestors --json",
     NULL, SN_CMD_MEMCOST, sn_cli_memcost},
    {"threads", "snsim threads --net NAME --batch N --gpu GPU [options]",
     "how many threads each kind of operation wants",
     "Profiles the operations of one training iteration on a device made of cores, one after another, by climbing: one "
     "thread, then more, as long as it gets faster (--interval). Backward of a CONV or FC is two operations, filter "
     "and data.\n"
     "The table: \"threads\": the count for all instances of the kind, which is the fastest found of the instance that "
     "takes longest with one thread (of measured times: with which all operations one after another are fastest); "
     "\"shapes\": different ones among the instances; \"ms\": all instances with that count, one after another; "
     "\"all cores ms\" and \"loss %\": with a thread on each core, and how much longer that is; \"samples\": counts "
     "that were tried, of the shape with the most; \"accuracy\": 100 % less the mean error of the times predicted for "
     "counts that were not tried.\n"
     "With -o FILE the time over the threads is also drawn, of the largest instance of each kind. Needs gnuplot.",
     "snsim threads --net inception_v3 --batch 16 --gpu knl7250\n"
     "snsim threads --net lenet --batch 64 --gpu manycore:cores=32,slots=2,tile=4 --interval geometric\n"
     "snsim threads --net inception_v3 --batch 16 --gpu knl7250 -o threads.png",
     NULL, SN_CMD_THREADS, sn_cli_threads},
    {"record", "snsim record FILE.py:NAME|--config FILE.json [options]", "record a training step of a PyTorch model",
     "Runs a training step of your own model twice on fake tensors of a GPU, without a GPU and without memory, in your "
     "own "
     "python3, which has PyTorch (SNSIM_PYTHON names another), and writes what happened: a recording, which every "
     "command reads "
     "where it reads a network. NAME is a function that returns models, optimizers and a step, and may take a batch; "
     "with "
     "--input it is a module's class, or a function that builds a model (docs/record.md). With --config it is a model "
     "of transformers, of a config.json that lies here.\n"
     "snsim --net FILE.py:NAME does the same and answers at once; it records again only when a .py file in that "
     "folder, an option or "
     "Python has changed.",
     "snsim record train.py:make -o mine.rec\n"
     "snsim record mymodel.py:Net --input 3,224,224 --optimizer adamw -o mine.rec.gz\n"
     "snsim record --config llama/config.json --sequence 2048 --optimizer adamw -o llama.rec.gz\n"
     "snsim --net mymodel.py:Net --input 3,224,224 --batch 64 --gpu rtx4090",
     "[FILE.py:NAME]", SN_CMD_RECORD, sn_cli_record},
    {"completions", "snsim completions bash|zsh|fish [-o FILE]", "a completion script for a shell",
     "Prints a script with which the shell completes commands, options, networks, GPUs, strategies, runs and files. "
     "An installed snsim brings all three along; otherwise write it where the shell looks:\n"
     "bash: ~/.local/share/bash-completion/completions/snsim; zsh: a file _snsim in a folder of $fpath; fish: "
     "~/.config/fish/completions/snsim.fish.",
     "source <(snsim completions bash)\n"
     "snsim completions fish -o ~/.config/fish/completions/snsim.fish",
     "bash|zsh|fish", SN_CMD_COMPLETIONS, sn_cli_completions},
    {"help", "snsim help [COMMAND|superneurons]", "how to use snsim, or one of its commands",
     "Prints how to use snsim, or all there is to say about one command.",
     "snsim help\n"
     "snsim help plot\n"
     "snsim help --man | man -l -",
     "[COMMAND]", SN_CMD_HELP, sn_cli_help},
};

enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

const sn_command *sn_command_table(uint32_t *count) {
  *count = N_COMMANDS;
  return commands;
}

const sn_command *sn_command_find(const char *name, sn_err *err) {
  const char *names[N_COMMANDS];
  char suggestion[400];
  for (uint32_t i = 0; i < N_COMMANDS; i++) {
    if (strcmp(commands[i].name, name) == 0) return &commands[i];
    names[i] = commands[i].name;
  }
  if (*sn_synonym_command(name, suggestion, sizeof suggestion)) {
    sn_fail(err, SN_BAD_USAGE, "unknown command \"%.80s\"%s", name, suggestion);
    return NULL;
  }
  sn_text_suggest(name, names, N_COMMANDS, suggestion, sizeof suggestion);
  sn_fail(err, SN_BAD_USAGE, "unknown command \"%.80s\"%s; snsim help lists the commands", name, suggestion);
  return NULL;
}
