"""Compares snsim's live bytes of transformers in the dialect `pytorch` with Hugging Face's modules, component by component:
pytorch_memory.py's way, on fake tensors and without a GPU.

    python3 bench/pytorch_transformers.py --net gpt2 --batch 4 --sequence 1024 --optimizer adamw
    python3 bench/pytorch_transformers.py --net bert_base --batch 32 --sequence 512
    python3 bench/pytorch_transformers.py --net llama --layers 4 --batch 4 --lora '8:*q_proj,*v_proj' --optimizer adamw8bit

Needs transformers (PyPI) beside what pytorch_memory.py needs; weights are random. Attention is PyTorch's fused kernel for a
CPU, told that it is causal instead of given a mask, and without dropout, which that kernel has not; on a GPU it keeps 16
bytes more a layer, the seeds. With --lora Hugging Face's peft puts the adapters in. What stays different: buffers, numbers of positions, and the cosines and sines that
Llama's layers share. Exit codes as pytorch_memory.py's.
"""
import argparse
import fnmatch
import json
import os
import sys

import pytorch_memory as memory
import torch
from pytorch_autocast import autocast, made_in
from torch.nn import functional as F

try:
    import transformers
except ImportError as error:
    memory.fail(4, f"transformers cannot be imported by this Python: {error}")


def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """No mask: on a GPU the kernel is told. Its autocast has it in 16 bits, a CPU's this operation not."""
    if torch.is_autocast_enabled("cpu"):
        q, k, v = (value.to(torch.get_autocast_dtype("cpu")) for value in (q, k, v))
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, CAUSAL[0], scale=scale)[0]


CAUSAL = [False]
# Hidden features, heads, heads of keys and values, features between the FCs, words, whether the last layer is the table.
DECODERS = {"llama": ("Llama", 4096, 32, 32, 11008, 32000, False), "llama3:8b": ("Llama", 4096, 32, 8, 14336, 128256, False),
            "llama3:1b": ("Llama", 2048, 32, 8, 8192, 128256, True), "mistral:7b": ("Mistral", 4096, 32, 8, 14336, 32768, False),
            "qwen2.5:0.5b": ("Qwen2", 896, 14, 2, 4864, 151936, True), "qwen2.5:7b": ("Qwen2", 3584, 28, 4, 18944, 152064, False),
            "phi3:mini": ("Phi3", 3072, 32, 32, 8192, 32064, False), "phi3:medium": ("Phi3", 5120, 40, 10, 17920, 32064, False),
            "gemma2:2b": ("Gemma2", 2304, 8, 4, 9216, 256000, True), "gemma2:9b": ("Gemma2", 3584, 16, 8, 14336, 256000, True),
            "mixtral:8x7b": ("Mixtral", 4096, 32, 8, 14336, 32000, False)}


def network(name, layers):
    """The module, what it says of tokens, and whether it names each token's next."""
    plain = {"use_cache": False, "attn_implementation": "sdpa"}
    if name == "gpt2":
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=layers, attn_pdrop=0.0, **plain)), True
    if name == "bert_base":
        config = transformers.BertConfig(num_hidden_layers=layers, attention_probs_dropout_prob=0.0, **plain)
        return transformers.BertModel(config), False
    if name in DECODERS:
        kind, hidden, heads, kv_heads, ffn, words, tied = DECODERS[name]
        config = getattr(transformers, f"{kind}Config")(
            hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv_heads,
            intermediate_size=ffn, vocab_size=words, tie_word_embeddings=tied, **plain)
        if kind == "Gemma2":  # whose heads have 256 features, whatever their number, and whose scores no fused kernel caps
            config._attn_implementation = "eager"
        else:
            config.sliding_window = None
        return getattr(transformers, f"{kind}ForCausalLM")(config), True
    if name == "t5_base":
        config = transformers.T5Config(d_model=768, d_ff=3072, num_layers=layers, num_heads=12, use_cache=False,
                                       attn_implementation="eager")
        return transformers.T5ForConditionalGeneration(config), True
    memory.fail(2, f"{name} is none of gpt2, bert_base, t5_base, {', '.join(DECODERS)}")


def adapted(net, lora):
    try:
        import peft
    except ImportError as error:
        memory.fail(4, f"peft cannot be imported by this Python: {error}")
    torch.nn.Module.to = lambda module, *_, **__: module  # all is where and what it should be; fake tensors cannot move
    head, _, globs = lora.partition(":")
    rank, *switches = head.split(",")
    dropout = next((float(word.removeprefix("dropout=")) for word in switches if word.startswith("dropout=")), 0.0)
    targets = "|".join(fnmatch.translate(glob) for glob in globs.split(",")) if globs else "all-linear"
    config = peft.LoraConfig(r=int(rank), target_modules=targets, lora_dropout=dropout)
    return peft.get_peft_model(net, config, autocast_adapter_dtype=False).base_model.model


def own_loss(options):
    """Whether the model computes its loss itself, which turns logits into float32 first."""
    return options.loss != "cross_entropy" and (options.net == "gpt2" or options.net in DECODERS)


def measure(options):
    F.dropout, F.scaled_dot_product_attention = memory.dropout, attention
    for name in ("normal_", "uniform_", "trunc_normal_", "kaiming_uniform_"):
        setattr(torch.nn.init, name, lambda tensor, *_, **__: tensor)
    with memory.FakeTensorMode():
        with made_in(options.precision):
            net, each = network(options.net, options.layers)
            if options.lora:
                net = adapted(net, options.lora)
        CAUSAL[0] = each
        update = memory.optimizer_of(options.optimizer, [p for p in net.train().parameters() if p.requires_grad])
        tracker = memory.Tracker()
        tracker.leave_alone(p for p in net.parameters() if not p.requires_grad)
        tracker.track_external(net, update)
        with tracker:
            tokens = torch.zeros(options.batch, options.sequence, dtype=torch.int64)
            labels = torch.zeros(options.batch * options.sequence if each else options.batch, dtype=torch.int64)
            for _ in range(2):
                update.zero_grad()
                given = {"decoder_input_ids": tokens} if options.net == "t5_base" else {}
                with autocast(options.precision):
                    if own_loss(options):
                        loss = net(tokens, labels=tokens).loss
                    else:
                        out = net(tokens, **given).logits.flatten(0, 1) if each else net(tokens).pooler_output
                        loss = F.cross_entropy(out, labels)
                        del out
                loss.backward()
                del loss
                tracker.reset_mod_stats()
                update.step()
        (peak,) = tracker.get_tracker_snapshot("peak").values()
    words = {getattr(kind, "value", kind): count for kind, count in peak.items()}
    kinds = ("Parameter", "Buffer", "Gradient", "Optstate", "Activation", "Temp")
    return dict(zip(memory.COMPONENTS, (words.get(kind, 0) for kind in kinds))) | {"total": words["Total"]}


def simulate(options):
    depth = f"{options.net}{',' if ':' in options.net else ':'}layers={options.layers}" if options.net in DECODERS else options.net
    answer = memory.ask(options.snsim, "--net", depth, "--batch", str(options.batch), "--sequence", str(options.sequence),
                        "--optimizer", options.optimizer, "--precision", options.precision, "--strategy", "pytorch", "--gpu", "h200", "--costs", "model",
                        "--no-db", "--json", *(["--lora", options.lora] if options.lora else []), *(["--loss", options.loss] if options.loss else []))
    result = answer["results"][0]
    return {key: result["live_at_peak"][key] for key in memory.COMPONENTS} | {"total": result["live_peak_bytes"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", default="gpt2", help="gpt2, bert_base, t5_base, llama, llama3:8b, llama3:1b, mistral:7b, qwen2.5:0.5b, qwen2.5:7b, phi3:mini or phi3:medium")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=512, help="tokens")
    parser.add_argument("--layers", type=int, default=None, help="of llama and its like (default: 2); the others have 12")
    parser.add_argument("--optimizer", default="momentum", choices=("sgd", "momentum", "adam", "adamw", "adam8bit", "adamw8bit"))
    parser.add_argument("--lora", metavar="R[,dropout=SHARE][:GLOB,..]", help="adapters of rank R beside the modules that match")
    parser.add_argument("--loss", choices=("cross_entropy", "cross_entropy_fp32"), help="of gpt2, llama and their like: PyTorch's of the logits as they are, or the model's own, given labels, which is the default")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16", "fp16", "amp-bf16", "amp-fp16"))
    parser.add_argument("--snsim", default=os.path.join(os.path.dirname(__file__), "..", "build", "snsim"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.layers and options.net not in DECODERS:
        memory.fail(2, "--layers is of llama and its like")
    options.layers = options.layers or (2 if options.net in DECODERS else 12)
    row = {"net": options.net, "batch": options.batch, "optimizer": options.optimizer, "precision": options.precision, "accumulate": 1, "inference": False,
           "pytorch": measure(options), "snsim": simulate(options)}
    print(json.dumps(row)) if options.json else memory.print_row(row)


if __name__ == "__main__":
    sys.exit(main())
