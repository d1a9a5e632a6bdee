"""Eleven models more that nobody had tried, of libraries and loops in which something is new: recurrence over images, masks that decide
shapes, pyramids of correlations, a codebook that is looked up, gradients of gradients, edges of graphs. bench/record/recordings.py --foreign
has them too. make(batch) returns models, optimizers and a step."""
import torch
from torch import nn
from torch.nn import functional as F

from recording_models import BF16, CUDA, floats, hugging_face, language, longs, timm, trained, vision
from recording_foreign import pictured

MODERN = dict(hidden_size=384, intermediate_size=576, num_hidden_layers=6, num_attention_heads=6, vocab_size=8000, global_attn_every_n_layers=3,
              local_attention=64, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)
GEMMA3 = dict(hidden_size=512, intermediate_size=1024, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=2, head_dim=64, vocab_size=8000,
              sliding_window=64)
PATCHES = dict(num_input_channels=7, context_length=512, prediction_length=96, patch_length=16, patch_stride=8, d_model=128, num_attention_heads=8,
               ffn_dim=256, num_hidden_layers=3)
VIDEO = dict(hidden_size=192, num_hidden_layers=4, num_attention_heads=3, intermediate_size=768, decoder_hidden_size=96, decoder_num_hidden_layers=2,
             decoder_num_attention_heads=3, decoder_intermediate_size=384, num_frames=8)


def films(batch):
    """Half of the patches are hidden, the same in each film."""
    hidden = torch.zeros(batch, 4 * 14 * 14, dtype=torch.bool, device=CUDA)
    hidden[:, ::2] = True
    return {"pixel_values": floats(batch, 8, 3, 224, 224), "bool_masked_pos": hidden}


def series(batch):
    return {"past_values": floats(batch, 512, 7), "future_values": floats(batch, 96, 7)}


# torchvision ----------------------------------------------------------------------------------------------------------------


def keypoints(batch):
    import torchvision
    model = torchvision.models.detection.keypointrcnn_resnet50_fpn(weights=None, weights_backbone=None)

    def batch_of():
        truth = [{"boxes": torch.tensor([[10.0, 10.0, 200.0, 200.0]], device=CUDA), "labels": torch.ones(1, dtype=torch.long, device=CUDA),
                  "keypoints": torch.full((1, 17, 3), 60.0, device=CUDA)} for _ in range(batch)]
        return [floats(3, 320, 320) for _ in range(batch)], truth
    return trained(model, "momentum", batch_of, lambda model, given: sum(model(*given).values()))


def flow(batch):
    """RAFT's loss over twelve guesses, later ones counting more."""
    import torchvision
    model = torchvision.models.optical_flow.raft_small()

    def loss(model, given):
        guesses = model(*given[:2], num_flow_updates=12)
        return sum(0.8 ** (len(guesses) - 1 - i) * (guess - given[2]).abs().mean() for i, guess in enumerate(guesses))
    return trained(model, "adamw", lambda: (floats(batch, 3, 128, 128), floats(batch, 3, 128, 128), floats(batch, 2, 128, 128)), loss)


# loops of one's own ---------------------------------------------------------------------------------------------------------


class Quantizer(nn.Module):
    """The nearest of 512 codes; the gradient goes straight through, and codes follow what is near them."""

    def __init__(self):
        super().__init__()
        self.register_buffer("codes", torch.randn(512, 64))
        self.register_buffer("counts", torch.ones(512))

    def forward(self, x):
        flat = x.permute(0, 2, 3, 1).reshape(-1, 64)
        nearest = torch.cdist(flat, self.codes).argmin(1)
        found = self.codes[nearest]
        with torch.no_grad():
            self.counts.mul_(0.99).index_add_(0, nearest, torch.ones_like(nearest, dtype=flat.dtype), alpha=0.01)
            sums = torch.zeros_like(self.codes).index_add_(0, nearest, flat)
            self.codes.lerp_(sums / self.counts[:, None], 0.01)
        found = found.view(x.shape[0], x.shape[2], x.shape[3], 64).permute(0, 3, 1, 2)
        return x + (found - x).detach(), F.mse_loss(x, found.detach())


def codebook(batch):
    coder = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 4, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, 1, 1))
    middle = Quantizer()
    decoder = nn.Sequential(nn.ConvTranspose2d(64, 64, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(64, 3, 4, 2, 1))
    optimizer = torch.optim.Adam([*coder.parameters(), *decoder.parameters()], 3e-4)

    def step():
        optimizer.zero_grad()
        images = floats(batch, 3, 64, 64)
        codes, distance = middle(coder(images))
        (F.mse_loss(decoder(codes), images) + 0.25 * distance).backward()
        optimizer.step()
    return [coder, middle, decoder], [optimizer], step


def learned_to_learn(batch):
    """MAML: two steps of inner descent on each of four tasks, and gradients through them."""
    model = nn.Sequential(nn.Conv2d(1, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 32, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 49, 5))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def step():
        optimizer.zero_grad()
        for _ in range(4):
            weights = dict(model.named_parameters())
            for _ in range(2):
                loss = F.cross_entropy(torch.func.functional_call(model, weights, (floats(batch, 1, 28, 28),)), longs(batch))
                grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
                weights = {name: w - 0.01 * g for (name, w), g in zip(weights.items(), grads)}
            asked = torch.func.functional_call(model, weights, (floats(batch, 1, 28, 28),))
            (F.cross_entropy(asked, longs(batch)) / 4).backward()
        optimizer.step()
    return [model], [optimizer], step


class Edges(nn.Module):
    """A layer of attention over the edges of a graph, with sums by scatter."""

    def __init__(self, width):
        super().__init__()
        self.value, self.score = nn.Linear(width, width), nn.Linear(2 * width, 1)

    def forward(self, x, start, end):
        score = F.leaky_relu(self.score(torch.cat([x[start], x[end]], 1))).squeeze(1).exp()
        total = torch.zeros(x.shape[0], device=x.device).index_add(0, end, score)
        message = self.value(x)[start] * (score / total[end])[:, None]
        return F.elu(torch.zeros_like(x).index_add(0, end, message) + x)


def graph(batch):
    """`batch` graphs of 64 nodes and 512 edges, in one."""
    layers = nn.ModuleList(Edges(128) for _ in range(4))
    head = nn.Linear(128, 10)
    optimizer = torch.optim.AdamW([*layers.parameters(), *head.parameters()], 1e-3)

    def step():
        optimizer.zero_grad()
        x, start, end = floats(64 * batch, 128), longs(512 * batch), longs(512 * batch)
        for layer in layers:
            x = layer(x, start, end)
        mean = x.view(batch, 64, 128).mean(1)
        F.cross_entropy(head(mean), longs(batch)).backward()
        nn.utils.clip_grad_norm_([*layers.parameters(), *head.parameters()], 1.0)
        optimizer.step()
    return [layers, head], [optimizer], step


ALL = {
    "timm_sequencer2d_s": (vision(timm("sequencer2d_s"), optimizer="adamw"), 4),
    "timm_repvit_m0_9": (vision(timm("repvit_m0_9"), optimizer="adamw", autocast=BF16), 4),
    "modernbert": (language(hugging_face("ModernBertForMaskedLM", "ModernBertConfig", **MODERN), 256), 4),
    "gemma3": (language(hugging_face("Gemma3ForCausalLM", "Gemma3TextConfig", **GEMMA3), 256, dtype=BF16), 4),
    "patchtst": (pictured("PatchTSTForPrediction", "PatchTSTConfig", series, **PATCHES), 8),
    "videomae": (pictured("VideoMAEForPreTraining", "VideoMAEConfig", films, **VIDEO), 2),
    "keypointrcnn_resnet50": (keypoints, 2), "raft_small": (flow, 2),
    "own_vqvae": (codebook, 16), "own_maml": (learned_to_learn, 8), "own_graph_attention": (graph, 8),
}
