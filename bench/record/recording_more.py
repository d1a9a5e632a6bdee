"""Models and loops more that nobody had tried: steps of two passes, selective checkpoints, members of an ensemble at once, functions that keep what is no
tensor, sentences that are made, and networks of libraries. bench/record/recordings.py --foreign has them too. make(batch) returns models, optimizers and a step."""
import copy
import functools

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

from recording_models import floats, hugging_face, language, longs, optimizer_of, timm, vision

DEEPSEEK = dict(hidden_size=256, intermediate_size=512, moe_intermediate_size=128, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4,
                n_routed_experts=8, num_experts_per_tok=2, n_group=2, topk_group=1, q_lora_rank=96, kv_lora_rank=64, qk_rope_head_dim=16,
                qk_nope_head_dim=32, v_head_dim=32, vocab_size=4000, first_k_dense_replace=1)
OSS = dict(hidden_size=256, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=64,
           num_local_experts=4, num_experts_per_tok=2, vocab_size=4000)
FNET = dict(hidden_size=256, num_hidden_layers=3, intermediate_size=512, vocab_size=4000)
BIG_BIRD = dict(hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512, vocab_size=4000, block_size=32, num_random_blocks=2)
REFORMER = dict(attn_layers=["local", "lsh"], hidden_size=128, feed_forward_size=256, num_attention_heads=2, attention_head_size=64, vocab_size=320,
                axial_pos_embds=False, max_position_embeddings=512, is_decoder=True, hash_seed=1, num_buckets=8, lsh_attn_chunk_length=64,
                local_attn_chunk_length=64)
RECURRENT = dict(hidden_size=256, intermediate_size=512, num_hidden_layers=3, num_attention_heads=4, lru_width=256, attention_window_size=64,
                 vocab_size=4000)


def stacked(width=512, layers=4):
    return nn.Sequential(*[each for _ in range(layers) for each in (nn.Linear(width, width), nn.GELU())], nn.Linear(width, 10))


def quasi_newton(batch):
    """LBFGS, whose closure runs as often as its search asks."""
    model = stacked()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, line_search_fn="strong_wolfe")

    def step():
        x, y = floats(batch, 512), longs(batch)

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss
        optimizer.step(closure)
    return [model], [optimizer], step


def checkpointed(batch, **options):
    layers = nn.ModuleList(stacked(256, 2)[:4] for _ in range(6))
    optimizer = optimizer_of("adamw", layers.parameters())

    def step():
        optimizer.zero_grad()
        x = floats(batch, 256)
        for layer in layers:
            x = checkpoint(layer, x, use_reentrant=False, **options)
        x.pow(2).mean().backward()
        optimizer.step()
    return [layers], [optimizer], step


def selective(batch):
    return checkpointed(batch, context_fn=functools.partial(create_selective_checkpoint_contexts, [torch.ops.aten.addmm.default]))


def ensemble(batch):
    """Four members at once by vmap, of the form of a module on the device meta."""
    members = [stacked(256, 2) for _ in range(4)]
    weights, _ = torch.func.stack_module_state(members)
    form = copy.deepcopy(members[0]).to("meta")
    holder = nn.ParameterDict({name.replace(".", "_"): weight for name, weight in weights.items()})
    optimizer = optimizer_of("adam", holder.parameters())

    def step():
        optimizer.zero_grad()
        x, y = floats(batch, 256), longs(batch)
        named = {name: holder[name.replace(".", "_")] for name in weights}
        out = torch.vmap(lambda of, x: torch.func.functional_call(form, of, (x,)), (0, None))(named, x)
        F.cross_entropy(out.flatten(0, 1), y.repeat(4)).backward()
        optimizer.step()
    return [holder], [optimizer], step


def normed(batch):
    """Weights under norms of all kinds."""
    norms = nn.utils.parametrizations
    model = nn.Sequential(norms.weight_norm(nn.Conv1d(16, 64, 5, padding=2)), nn.LeakyReLU(0.2), norms.spectral_norm(nn.Conv1d(64, 64, 5, padding=2)),
                          nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), norms.orthogonal(nn.Linear(64, 64)), nn.utils.weight_norm(nn.Linear(64, 10)))
    optimizer = optimizer_of("adam", model.parameters())

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(floats(batch, 16, 256)), longs(batch)).backward()
        optimizer.step()
    return [model], [optimizer], step


def choosing(batch):
    """Goes on with the rows that a value chooses."""
    model = stacked()
    optimizer = optimizer_of("adam", model.parameters())

    def step():
        optimizer.zero_grad()
        h = model[:4](floats(batch, 512))
        kept, count = h[h.abs().mean(1) > 0.1], int(h.sum().item()) + 1
        (F.cross_entropy(model[4:](kept), longs(kept.shape[0])) * count).backward()
        optimizer.step()
    return [model], [optimizer], step


def generating(batch):
    import transformers
    config = transformers.GPT2Config(n_layer=2, n_embd=256, n_head=4, vocab_size=2000)
    model = transformers.GPT2LMHeadModel(config).eval()

    def step():
        with torch.no_grad():
            model.generate(longs(batch, 16), max_new_tokens=8, do_sample=False, pad_token_id=0)
    return [model], [], step


def of_timm(name, image=224):
    return vision(timm(name), image, optimizer="adamw"), 4


def of_tokens(kind, config, options, length=128):
    return language(hugging_face(kind, config, **options), length), 4


ALL = {
    "timm_volo_d1": of_timm("volo_d1_224"), "timm_gcvit_xxtiny": of_timm("gcvit_xxtiny"), "timm_fastvit_t8": of_timm("fastvit_t8"),
    "timm_lambda_resnet26t": of_timm("lambda_resnet26t"), "timm_halonet26t": of_timm("halonet26t", 256),
    "timm_twins_svt_small": of_timm("twins_svt_small"), "timm_mobilenetv4_hybrid": of_timm("mobilenetv4_hybrid_medium"),
    "deepseek_v3": of_tokens("DeepseekV3ForCausalLM", "DeepseekV3Config", DEEPSEEK), "gpt_oss": of_tokens("GptOssForCausalLM", "GptOssConfig", OSS),
    "fnet": of_tokens("FNetForMaskedLM", "FNetConfig", FNET), "big_bird": of_tokens("BigBirdForMaskedLM", "BigBirdConfig", BIG_BIRD, 512),
    "reformer": of_tokens("ReformerModelWithLMHead", "ReformerConfig", REFORMER, 256),
    "recurrent_gemma": of_tokens("RecurrentGemmaForCausalLM", "RecurrentGemmaConfig", RECURRENT),
    "own_lbfgs_wolfe": (quasi_newton, 16), "own_selective_checkpoints": (selective, 64), "own_ensemble_vmap": (ensemble, 16),
    "own_norms": (normed, 8), "own_depends": (choosing, 16), "own_generate": (generating, 4),
}
