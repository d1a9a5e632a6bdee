"""The networks of bench/pytorch_parallel.py, by snsim's names: torchtitan's Llama (`llm:..`), torchvision's, transformers' Llama
and GPT-2, and `stack:LAYERS,D`, which snsim has not: FCs of uneven sizes with biases. Each knows its blocks, which are the groups of
fully_shard, and what an iteration computes."""

import torch
from torch import nn
from torch.nn import functional as F

from pytorch_zoo import torchvision_name


class Attention(nn.Module):
    def __init__(self, width, heads, kv_heads):
        super().__init__()
        self.head, keys = width // heads, width // heads * kv_heads
        self.repeats = heads // kv_heads
        self.wq, self.wo = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.wk, self.wv = nn.Linear(width, keys, bias=False), nn.Linear(width, keys, bias=False)

    def forward(self, x):
        q, k, v = (each(x).unflatten(-1, (-1, self.head)).transpose(1, 2) for each in (self.wq, self.wk, self.wv))
        if self.repeats > 1:
            k, v = (each.repeat_interleave(self.repeats, 1) for each in (k, v))
        return self.wo(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.w1, self.w3 = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.w2 = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Norm(nn.Module):
    """transformers' LlamaRMSNorm."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


NORMS = {"torch": nn.RMSNorm, "transformers": Norm}


class Layer(nn.Module):
    def __init__(self, width, heads, kv_heads, inner, norm):
        super().__init__()
        self.attention_norm, self.attention = norm(width), Attention(width, heads, kv_heads)
        self.ffn_norm, self.feed_forward = norm(width), FeedForward(width, inner)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.ffn_norm(x))


class Titan(nn.Module):
    """torchtitan's names of modules; without rotation, which has no weights."""

    def __init__(self, layers, width, heads, kv_heads, inner, words, norm):
        super().__init__()
        self.tok_embeddings = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Layer(width, heads, kv_heads, inner, norm) for _ in range(layers))
        self.norm, self.output = norm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.tok_embeddings(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


class Stack(nn.Module):
    def __init__(self, layers, width):
        super().__init__()
        wide = 4 * width + 3
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(width, wide), nn.ReLU(), nn.Linear(wide, width)) for _ in range(layers))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


# ---- those of transformers ----

LLAMAS = ("llama", "llama3", "mistral", "qwen2.5", "phi3", "gemma2")
LLAMA = {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 0, "ffn": 11008, "vocabulary": 32000, "head": 0}
GPT2 = {"layers": 12, "hidden": 768, "heads": 12, "ffn": 0, "vocabulary": 50257, "positions": 1024}


def keys_of(name, rest, defaults):
    given = dict(word.split("=", 1) for word in rest.split(",") if "=" in word)
    if set(given) - set(defaults) or len(given) != len([word for word in rest.split(",") if word]):
        raise ValueError(f"{name}:{rest}: keys are {', '.join(defaults)}")
    return defaults | {key: int(value) for key, value in given.items()}


def llama(family, rest):
    """Llama, and those that are made of the same parts: Mistral and Phi-3 without their windows, Qwen2, Gemma 2 with the attention that it has
    unless told otherwise. The head of llama3:1b has the table's weights, and so has Gemma 2's."""
    import transformers
    kind = {"mistral": "Mistral", "qwen2.5": "Qwen2", "phi3": "Phi3", "gemma2": "Gemma2"}.get(family, "Llama")
    small = family == "llama3" and rest.startswith("1b,")
    of = keys_of(family, rest.removeprefix("1b,") if small else rest, LLAMA)
    more = {"mistral": {"sliding_window": None}, "phi3": {"pad_token_id": 0},
            "gemma2": {"head_dim": of["head"] or of["hidden"] // of["heads"]}}.get(family, {})
    config = getattr(transformers, f"{kind}Config")(
        num_hidden_layers=of["layers"], hidden_size=of["hidden"], num_attention_heads=of["heads"], num_key_value_heads=of["kv_heads"] or of["heads"],
        intermediate_size=of["ffn"], vocab_size=of["vocabulary"], use_cache=False, tie_word_embeddings=small or family == "gemma2",
        attn_implementation="eager" if family == "gemma2" else "sdpa", **more)
    return getattr(transformers, f"{kind}ForCausalLM")(config)


def gpt2(rest, dropout):
    """The kernel for a CPU drops no probabilities; `dropout` of what is added."""
    import transformers
    of = keys_of("gpt2", rest, GPT2)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=of["layers"], n_embd=of["hidden"], n_head=of["heads"], n_inner=of["ffn"] or None, vocab_size=of["vocabulary"],
        n_positions=of["positions"], attn_pdrop=0.0, resid_pdrop=dropout, embd_pdrop=dropout, use_cache=False,
        attn_implementation="sdpa"))


# ---- any ----

def numbers(name, rest, count, what):
    words = rest.split(",")
    if len(words) != count or not all(word.isdigit() and int(word) > 0 for word in words):
        raise ValueError(f"{name}:{rest}: it is {name}:{what}")
    return [int(word) for word in words]


def torchvision_blocks(name, net):
    if name.startswith(("resnet", "resnext", "wide_resnet")):
        return [block for stage in (net.layer1, net.layer2, net.layer3, net.layer4) for block in stage]
    if name.startswith(("vgg", "alexnet")):
        return [each for part in (net.features, net.classifier) for each in part if isinstance(each, (nn.Conv2d, nn.Linear))]
    if name.startswith("vit_"):
        return list(net.encoder.layers)
    raise ValueError(f"{name}: which of its modules are sharded is not known here")


class Trained:
    """A network of that name: `module`, `blocks`, and `kind` of its batch: tokens, labelled (tokens; the model has the loss), images,
    vectors. ValueError where there is none, ImportError where its library is missing."""

    def __init__(self, name, dropout, norms="torch"):
        family, _, rest = name.partition(":")
        self.width, self.kind, self.positions = 0, "tokens", False
        if family == "llm":
            self.module = Titan(*numbers(family, rest, 6, "LAYERS,D,HEADS,KV,FFN,WORDS"), NORMS[norms])
            self.blocks = list(self.module.layers)
        elif family == "stack":
            layers, self.width = numbers(family, rest, 2, "LAYERS,D")
            self.module, self.kind = Stack(layers, self.width), "vectors"
            self.blocks = list(self.module.layers)
        elif family in LLAMAS:
            self.kind, self.module = "labelled", llama(family, rest)
            self.blocks = list(self.module.model.layers)
        elif family == "gpt2":
            self.kind, self.module = "labelled", gpt2(rest, dropout)
            self.blocks = list(self.module.transformer.h)
        elif torchvision_name(name):
            import torchvision
            self.kind, self.module = "images", torchvision.models.get_model(torchvision_name(name), weights=None)
            self.blocks = torchvision_blocks(torchvision_name(name), self.module)
        else:
            raise ValueError(f"{name} is none of llm:.., stack:.., llama:.., llama3:1b,.., mistral:.., qwen2.5:.., phi3:.., gemma2:.., gpt2:.., tv_resnet50 and its like, tv_vgg16, vit_b_16")

    def batch(self, count, sequence, image):
        if self.kind in ("tokens", "labelled"):
            return torch.zeros(count, sequence, dtype=torch.int64), torch.zeros(count, sequence, dtype=torch.int64)
        values = torch.randn(count, 3, image, image) if self.kind == "images" else torch.randn(count, self.width)
        return values, torch.zeros(count, dtype=torch.int64)

    def of_all_positions(self, given):
        """What the model would make of the positions that a rank has: numbers, and masks of Gemma 2."""
        positions = torch.arange(given.shape[1])[None]
        if self.module.config.model_type != "gemma2":
            return {"position_ids": positions}
        from transformers.masking_utils import create_causal_mask, create_sliding_window_causal_mask
        of = {"config": self.module.config, "inputs_embeds": torch.empty(*given.shape, 0), "attention_mask": None, "cache": None,
              "position_ids": positions}
        masks = {"full_attention": create_causal_mask(**of), "sliding_attention": create_sliding_window_causal_mask(**of)}
        return {"position_ids": positions, "attention_mask": masks}

    def loss(self, wrapped, given, labels, dtype):
        """Of the module as it is wrapped; `dtype`: of the values it is given."""
        if self.kind == "labelled":
            return wrapped(input_ids=given, labels=labels, **(self.of_all_positions(given) if self.positions else {})).loss
        out = wrapped(given.to(dtype) if given.is_floating_point() else given)
        if self.kind == "tokens":
            out, labels = out.flatten(0, 1), labels.flatten()
        return F.cross_entropy(out, labels)
