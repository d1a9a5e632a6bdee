"""Models and loops that the recorder was not made with: bench/record/recordings.py --foreign sets the program's answers about them
beside PyTorch's MemTracker. make(batch) returns models, optimizers and a step."""
import torch
from torch import nn
from torch.nn import functional as F

from recording_models import BF16, CUDA, LLAMA, floats, hugging_face, language, longs, optimizer_of, timm, trained, vision

# transformers ---------------------------------------------------------------------------------------------------------------

QWEN = dict(hidden_size=512, intermediate_size=1536, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=2, head_dim=64,
            vocab_size=16000)
DEBERTA = dict(hidden_size=384, num_hidden_layers=4, num_attention_heads=6, intermediate_size=1536, vocab_size=8000,
               relative_attention=True, pos_att_type=["p2c", "c2p"])
BART = dict(d_model=512, encoder_layers=4, decoder_layers=4, encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=2048,
            decoder_ffn_dim=2048, vocab_size=8000)
SPEECH = dict(hidden_size=384, num_hidden_layers=4, num_attention_heads=6, intermediate_size=1536, mask_time_prob=0.0)
BLOOM = dict(hidden_size=512, n_layer=4, n_head=8, vocab_size=16000)
MAMBA2 = dict(hidden_size=256, num_hidden_layers=2, num_heads=8, head_dim=64, n_groups=1, state_size=64, vocab_size=8000)
LONGFORMER = dict(hidden_size=384, num_hidden_layers=4, num_attention_heads=6, intermediate_size=1536, attention_window=[128] * 4, vocab_size=8000,
                  max_position_embeddings=1026)
OLMOE = dict(hidden_size=512, intermediate_size=512, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=8, num_experts=16,
             num_experts_per_tok=4, vocab_size=16000)


def paired(batch):
    return {"input_ids": longs(batch, 128), "labels": longs(batch, 64)}


def sounds(batch):
    return {"input_values": floats(batch, 16000), "labels": longs(batch, 20)}


def images(batch):
    return {"pixel_values": floats(batch, 3, 224, 224)}


def scenes(batch):
    return {"pixel_values": floats(batch, 3, 256, 256), "labels": longs(batch, 256, 256)}


def pictured(kind, config, inputs, **options):
    """A model of transformers that makes its own loss and takes no tokens."""
    build = hugging_face(kind, config, **options)

    def make(batch):
        return trained(build(), "adamw", lambda: inputs(batch), lambda model, given: model(**given).loss)
    return make


# diffusers ------------------------------------------------------------------------------------------------------------------


def diffusers(kind, batch_of, loss, **options):
    def make(batch):
        import diffusers as library
        return trained(getattr(library, kind)(**options), "adamw", lambda: batch_of(batch), loss)
    return make


def of_noise(model, given):
    return F.mse_loss(model(*given[:-1]).sample, given[-1])


def of_codes(model, given):
    """An autoencoder's loss, with the divergence of its codes."""
    codes = model.encode(given).latent_dist
    return F.mse_loss(model.decode(codes.sample()).sample, given) + 1e-6 * codes.kl().mean()


def of_control(model, given):
    down, middle = model(*given, return_dict=False)
    return sum(each.pow(2).mean() for each in (*down, middle))


PIXELS = diffusers("UNet2DModel", lambda n: (floats(n, 3, 64, 64), longs(n), floats(n, 3, 64, 64)), of_noise, sample_size=64,
                   block_out_channels=(64, 128, 256), down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
                   up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"))
CODER = diffusers("AutoencoderKL", lambda n: floats(n, 3, 128, 128), of_codes, block_out_channels=(64, 128, 256),
                  down_block_types=("DownEncoderBlock2D",) * 3, up_block_types=("UpDecoderBlock2D",) * 3, latent_channels=4)
DIT = diffusers("DiTTransformer2DModel", lambda n: (floats(n, 4, 32, 32), longs(n), longs(n), floats(n, 4, 32, 32)), of_noise, num_attention_heads=6,
                attention_head_dim=64, in_channels=4, out_channels=4, num_layers=6, sample_size=32)
SD3 = diffusers("SD3Transformer2DModel", lambda n: (floats(n, 16, 32, 32), floats(n, 77, 512), floats(n, 256), longs(n), floats(n, 16, 32, 32)),
                of_noise, sample_size=32, patch_size=2, in_channels=16, num_layers=4, attention_head_dim=64, num_attention_heads=6, joint_attention_dim=512,
                caption_projection_dim=384, pooled_projection_dim=256, out_channels=16, pos_embed_max_size=32)
CONTROL = diffusers("ControlNetModel", lambda n: (floats(n, 4, 32, 32), longs(n), floats(n, 77, 256), floats(n, 3, 256, 256)), of_control,
                    block_out_channels=(64, 128, 256), down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
                    cross_attention_dim=256, attention_head_dim=8, conditioning_embedding_out_channels=(16, 32, 96, 256), norm_num_groups=32)

# detection and segmentation -------------------------------------------------------------------------------------------------


def detected(name, side, **options):
    """A detector of torchvision, whose losses are summed."""
    def make(batch):
        import torchvision
        model = getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None, **options)

        def batch_of():
            truth = [{"boxes": torch.tensor([[10.0, 10.0, 200.0, 200.0], [30.0, 60.0, 90.0, 220.0]], device=CUDA),
                      "labels": torch.ones(2, dtype=torch.long, device=CUDA)} for _ in range(batch)]
            return [floats(3, side, side) for _ in range(batch)], truth
        return trained(model, "momentum", batch_of, lambda model, given: sum(model(*given).values()))
    return make


def segmented(name):
    def make(batch):
        import torchvision
        model = getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None, num_classes=21)

        def loss(model, given):
            return F.cross_entropy(model(given[0])["out"], given[1])
        return trained(model, "momentum", lambda: (floats(batch, 3, 256, 256), longs(batch, 256, 256)), loss)
    return make


# loops of one's own ---------------------------------------------------------------------------------------------------------


class Speaker(nn.Module):
    """Two GRUs over packed sequences of unequal lengths."""

    def __init__(self):
        super().__init__()
        self.memory, self.out = nn.GRU(80, 256, 2, batch_first=True, bidirectional=True, dropout=0.2), nn.Linear(512, 40)

    def forward(self, sounds, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(sounds, lengths, batch_first=True)
        return self.out(nn.utils.rnn.pad_packed_sequence(self.memory(packed)[0], batch_first=True)[0])


def gru(batch):
    """Speech with CTC."""
    model = Speaker()
    optimizer = optimizer_of("adam", model.parameters())
    lengths = torch.full((batch,), 200, device="cpu")

    def step():
        optimizer.zero_grad()
        scores = model(floats(batch, 200, 80), lengths).log_softmax(2).transpose(0, 1)
        loss = F.ctc_loss(scores, torch.ones(batch, 20, dtype=torch.long, device=CUDA), torch.full((batch,), 200), torch.full((batch,), 20))
        loss.backward()
        optimizer.step()
    return [model], [optimizer], step


def seq2seq(batch):
    """nn.Transformer with masks of its own, labels smoothed, the rate warmed up."""
    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(8000, 256), nn.Embedding(128, 256)
            self.body = nn.Transformer(256, 4, 3, 3, 1024, batch_first=True)
            self.out = nn.Linear(256, 8000, bias=False)
            self.out.weight = self.words.weight

        def embedded(self, tokens):
            return self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))

        def forward(self, source, target):
            mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
            padding = source == 0
            return self.out(self.body(self.embedded(source), self.embedded(target), tgt_mask=mask, src_key_padding_mask=padding,
                                      memory_key_padding_mask=padding, tgt_is_causal=True))
    model = Translator()
    optimizer = optimizer_of("adam", model.parameters())
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) ** -0.5, (step + 1) * 4000 ** -1.5))

    def step():
        source, target = torch.ones(batch, 48, dtype=torch.long, device=CUDA), torch.ones(batch, 40, dtype=torch.long, device=CUDA)
        scores = model(source, target[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), target[:, 1:].flatten(), label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return [model], [optimizer], step


def spectral(*layers):
    return nn.Sequential(*[nn.utils.parametrizations.spectral_norm(each) if isinstance(each, nn.Conv2d) else each for each in layers])


def generator():
    layers = [nn.Linear(128, 256 * 16), nn.Unflatten(1, (256, 4, 4))]
    for a, b in ((256, 128), (128, 64), (64, 32)):
        layers += [nn.Upsample(scale_factor=2), nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(True)]
    return nn.Sequential(*layers, nn.Conv2d(32, 3, 3, padding=1), nn.Tanh())


def critics():
    return [nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(64, 128, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(128, 256, 4, 2, 1),
            nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(256 * 16, 1)]


def hinge_gan(batch):
    """Spectral norms, hinge loss, two updates of the judge to one of the maker."""
    maker, judge = generator(), spectral(*critics())
    makes, judges = (torch.optim.Adam(each.parameters(), 2e-4, (0.0, 0.9)) for each in (maker, judge))

    def step():
        for _ in range(2):
            judges.zero_grad()
            with torch.no_grad():
                made = maker(torch.randn(batch, 128, device=CUDA))
            loss = F.relu(1 - judge(floats(batch, 3, 32, 32))).mean() + F.relu(1 + judge(made)).mean()
            loss.backward()
            judges.step()
        makes.zero_grad()
        judge.requires_grad_(False)
        loss = -judge(maker(torch.randn(batch, 128, device=CUDA))).mean()
        loss.backward()
        judge.requires_grad_(True)
        makes.step()
    return [maker, judge], [makes, judges], step


def gradient_penalty(batch):
    """WGAN-GP: the norm of the judge's gradient by its input, differentiated again."""
    maker, judge = generator(), nn.Sequential(*critics())
    makes, judges = (torch.optim.Adam(each.parameters(), 1e-4, (0.0, 0.9)) for each in (maker, judge))

    def step():
        real, made = floats(batch, 3, 32, 32), maker(torch.randn(batch, 128, device=CUDA)).detach()
        share = torch.rand(batch, 1, 1, 1, device=CUDA)
        between = (share * real + (1 - share) * made).requires_grad_(True)
        gradient, = torch.autograd.grad(judge(between).sum(), between, create_graph=True)
        judges.zero_grad()
        loss = judge(made).mean() - judge(real).mean() + 10 * (gradient.flatten(1).norm(2, 1) - 1).pow(2).mean()
        loss.backward()
        judges.step()
        makes.zero_grad()
        loss = -judge(maker(torch.randn(batch, 128, device=CUDA))).mean()
        loss.backward()
        makes.step()
    return [maker, judge], [makes, judges], step


def ppo(batch):
    """Policy and value with a body in common, two losses summed, three passes over a batch in two parts."""
    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(),
                                      nn.Flatten(), nn.Linear(3136, 512), nn.ReLU())
            self.actor, self.critic = nn.Linear(512, 18), nn.Linear(512, 1)

        def forward(self, frames):
            x = self.body(frames.float() / 255)
            return torch.distributions.Categorical(logits=self.actor(x)), self.critic(x).squeeze(1)
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4, eps=1e-5)

    def step():
        frames = torch.zeros(2 * batch, 4, 84, 84, dtype=torch.uint8, device=CUDA)
        with torch.no_grad():
            policy, values = agent(frames)
            actions = policy.sample()
            before = policy.log_prob(actions)
        gains = torch.randn(2 * batch, device=CUDA)
        aims = gains + values
        for _ in range(3):
            for part in torch.randperm(2 * batch, device=CUDA).split(batch):
                policy, values = agent(frames[part])
                ratio = (policy.log_prob(actions[part]) - before[part]).exp()
                gain = (gains[part] - gains[part].mean()) / (gains[part].std() + 1e-8)
                of_policy = torch.max(-gain * ratio, -gain * ratio.clamp(0.9, 1.1)).mean()
                of_value = F.mse_loss(values, aims[part])
                optimizer.zero_grad()
                (of_policy + 0.5 * of_value - 0.01 * policy.entropy().mean()).backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
    return [agent], [optimizer], step


def contrastive(batch):
    """Pictures and words under CLIP's loss; similarities of all with all grow with the square of the batch."""
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            import torchvision
            self.eye = torchvision.models.resnet18(num_classes=256)
            self.words = nn.Embedding(4000, 256)
            self.ear = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True), 2)
            self.scale = nn.Parameter(torch.tensor(2.6593))

        def forward(self, pictures, tokens):
            seen, heard = F.normalize(self.eye(pictures), dim=1), F.normalize(self.ear(self.words(tokens)).mean(1), dim=1)
            return self.scale.exp() * seen @ heard.t()
    model = Pair()
    optimizer = optimizer_of("adamw", model.parameters())

    def step():
        optimizer.zero_grad()
        alike = model(floats(batch, 3, 96, 96), longs(batch, 32))
        labels = torch.arange(batch, device=CUDA)
        loss = (F.cross_entropy(alike, labels) + F.cross_entropy(alike.t(), labels)) / 2
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            model.scale.clamp_(0, 4.6052)
    return [model], [optimizer], step


def experts(batch):
    """A mixture whose experts take the rows that a gate sends them, with a loss for balance."""
    class Mixture(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(256, 8, bias=False)
            self.experts = nn.ModuleList(nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(8))

        def forward(self, x):
            shares = self.gate(x).softmax(1)
            best, chosen = shares.topk(2, 1)
            out = torch.zeros_like(x)
            for k, expert in enumerate(self.experts):
                row, place = (chosen == k).nonzero(as_tuple=True)
                out = out.index_add(0, row, expert(x[row]) * best[row, place, None])
            return out, 8 * (shares.mean(0) * F.one_hot(chosen, 8).float().mean((0, 1))).sum()

    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.layers, self.out = nn.Embedding(4000, 256), nn.ModuleList(Mixture() for _ in range(3)), nn.Linear(256, 4000)

        def forward(self, tokens):
            x, balance = self.words(tokens.flatten()), 0.0
            for layer in self.layers:
                y, uneven = layer(x)
                x, balance = x + y, balance + uneven
            return self.out(x), balance
    model = Stack()
    optimizer = optimizer_of("adamw", model.parameters())

    def step():
        optimizer.zero_grad()
        tokens = longs(batch, 64)
        scores, balance = model(tokens)
        loss = F.cross_entropy(scores, tokens.flatten()) + 0.01 * balance
        loss.backward()
        optimizer.step()
    return [model], [optimizer], step


def averaged(batch):
    """Weights averaged over time by swa_utils, and a target that follows by hand, as BYOL's."""
    import torchvision
    model = torchvision.models.mobilenet_v2(num_classes=128)
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99), use_buffers=True)
    head = nn.Sequential(nn.Linear(128, 512), nn.BatchNorm1d(512), nn.ReLU(True), nn.Linear(512, 128))
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], 0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
    follower = {name: value.detach().clone() for name, value in head.state_dict().items()}

    def step():
        optimizer.zero_grad()
        one, other = floats(batch, 3, 96, 96), floats(batch, 3, 96, 96)
        with torch.no_grad():
            aim = F.normalize(average(other), dim=1)
        loss = 2 - 2 * (F.normalize(head(model(one)), dim=1) * aim).sum(1).mean()
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
        with torch.no_grad():
            for name, value in head.state_dict().items():
                if value.is_floating_point():
                    follower[name].lerp_(value, 0.01)
    return [model, average, head], [optimizer], step


def physics(batch):
    """The heat equation: second derivatives of the net by its inputs, in the loss."""
    net = nn.Sequential(nn.Linear(2, 128), nn.Tanh(), *[layer for _ in range(4) for layer in (nn.Linear(128, 128), nn.Tanh())], nn.Linear(128, 1))
    optimizer = optimizer_of("adam", net.parameters())

    def step():
        optimizer.zero_grad()
        x, t = (torch.rand(batch, 1, device=CUDA, requires_grad=True) for _ in range(2))
        u = net(torch.cat([x, t], 1))
        by_x, by_t = torch.autograd.grad(u, (x, t), torch.ones_like(u), create_graph=True)
        twice, = torch.autograd.grad(by_x, x, torch.ones_like(by_x), create_graph=True)
        edge = net(torch.cat([torch.zeros_like(x), t], 1))
        loss = (by_t - 0.1 * twice).pow(2).mean() + edge.pow(2).mean()
        loss.backward()
        optimizer.step()
    return [net], [optimizer], step


def accumulated(batch):
    """Four small batches an update, clipped, the losses kept for a log."""
    import torchvision
    model = torchvision.models.efficientnet_b0()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.05)
    seen = []

    def step():
        for _ in range(4):
            loss = F.cross_entropy(model(floats(batch, 3, 128, 128)), longs(batch))
            (loss / 4).backward()
            seen.append(loss.detach())
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return [model], [optimizer], step


# adapters and the Trainer ---------------------------------------------------------------------------------------------------


def adapted(dropout, checkpoints=False, all_linear=False):
    """LoRA by peft, as its documentation has it."""
    def make(batch):
        import peft
        model = hugging_face("LlamaForCausalLM", "LlamaConfig", **LLAMA)().to(BF16)
        if checkpoints:
            model.gradient_checkpointing_enable({"use_reentrant": False})
            model.enable_input_require_grads()
        modules = "all-linear" if all_linear else ["q_proj", "v_proj"]
        model = peft.get_peft_model(model, peft.LoraConfig(r=16, lora_alpha=32, lora_dropout=dropout, target_modules=modules, task_type="CAUSAL_LM"))

        def batch_of():
            tokens = longs(batch, 256)
            return {"input_ids": tokens, "labels": tokens}
        return trained(model, "adamw", batch_of, lambda model, given: model(**given).loss, BF16)
    return make


def quantized(batch):
    """QLoRA: linear layers in bitsandbytes' NF4, twice quantised, adapters with dropout, blocks under checkpoints, 8-bit AdamW."""
    import bitsandbytes
    import peft
    model = hugging_face("LlamaForCausalLM", "LlamaConfig", **LLAMA)().to(BF16)
    for path, module in list(model.named_modules()):
        if isinstance(module, nn.Linear) and path != "lm_head":
            owner, _, name = path.rpartition(".")
            small = bitsandbytes.nn.Linear4bit(module.in_features, module.out_features, bias=False, compute_dtype=BF16, quant_type="nf4")
            small.weight = bitsandbytes.nn.Params4bit(module.weight.data, False, quant_type="nf4", module=small)
            setattr(model.get_submodule(owner), name, small)
    del module, small
    model = model.to(CUDA)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    model.enable_input_require_grads()
    config = peft.LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, target_modules="all-linear", task_type="CAUSAL_LM")
    model = peft.get_peft_model(model, config).train()
    optimizer = bitsandbytes.optim.AdamW8bit([p for p in model.parameters() if p.requires_grad])

    def step():
        optimizer.zero_grad()
        tokens = longs(batch, 256)
        with torch.autocast(CUDA, BF16):
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
    return [model], [optimizer], step


def trainer(batch):
    """What transformers' Trainer does by default: fused AdamW in two groups, bf16 autocast, two batches an update, norms clipped."""
    model = hugging_face("GPT2LMHeadModel", "GPT2Config", n_layer=4, n_embd=512, n_head=8, vocab_size=16000)().train()
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}], 5e-5, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / 1000)
    total = torch.tensor(0.0, device=CUDA)

    def step():
        nonlocal total
        for _ in range(2):
            tokens = longs(batch, 256)
            model.train()
            with torch.autocast(CUDA, BF16):
                loss = model(input_ids=tokens, labels=tokens).loss
            loss = loss / 2
            loss.backward()
            total = total + loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        model.zero_grad()
    return [model], [optimizer], step


def transformers_trainer(batch):
    """transformers.Trainer itself: its training_step, optimizer, schedule and clipping; bf16, two batches an update."""
    import tempfile

    import transformers
    model = hugging_face("GPT2LMHeadModel", "GPT2Config", n_layer=4, n_embd=512, n_head=8, vocab_size=16000)().train()
    options = transformers.TrainingArguments(tempfile.gettempdir(), bf16=True, gradient_accumulation_steps=2, report_to=[])
    trainer = transformers.Trainer(model=model, args=options)
    trainer.create_optimizer_and_scheduler(1000)
    trainer.current_gradient_accumulation_steps = 2

    def step():
        for _ in range(2):
            tokens = longs(batch, 256)
            trainer.training_step(model, {"input_ids": tokens, "labels": tokens})
        trainer.accelerator.clip_grad_norm_(model.parameters(), 1.0)
        trainer.optimizer.step()
        trainer.lr_scheduler.step()
        model.zero_grad()
    return [model], [trainer.optimizer], step


# all of them: make and batch ------------------------------------------------------------------------------------------------

ALL = {
    "timm_coatnet_0": (vision(timm("coatnet_0_rw_224"), optimizer="adamw"), 4),
    "timm_poolformer_s12": (vision(timm("poolformer_s12"), optimizer="adamw"), 4),
    "timm_mobilevit_s": (vision(timm("mobilevit_s"), 256, "adamw"), 4),
    "timm_cait_xxs24": (vision(timm("cait_xxs24_224"), optimizer="adamw"), 4),
    "timm_focalnet_tiny": (vision(timm("focalnet_tiny_srf"), optimizer="adamw"), 4),
    "timm_crossvit_tiny": (vision(timm("crossvit_tiny_240"), 240, "adamw"), 4),
    "timm_hiera_tiny": (vision(timm("hiera_tiny_224"), optimizer="adamw"), 4),
    "timm_eva02_tiny": (vision(timm("eva02_tiny_patch14_224"), optimizer="adamw"), 4),
    "timm_davit_tiny": (vision(timm("davit_tiny"), optimizer="adamw"), 4),
    "timm_res2net50": (vision(timm("res2net50_26w_4s")), 4),
    "qwen3": (language(hugging_face("Qwen3ForCausalLM", "Qwen3Config", **QWEN), 256, dtype=BF16), 4),
    "deberta_v2": (language(hugging_face("DebertaV2ForMaskedLM", "DebertaV2Config", **DEBERTA), 128), 4),
    "bart": (language(hugging_face("BartForConditionalGeneration", "BartConfig", **BART), 0, inputs=paired), 4),
    "wav2vec2_ctc": (pictured("Wav2Vec2ForCTC", "Wav2Vec2Config", sounds, **SPEECH), 4),
    "vit_mae": (pictured("ViTMAEForPreTraining", "ViTMAEConfig", images, num_hidden_layers=4), 4),
    "segformer": (pictured("SegformerForSemanticSegmentation", "SegformerConfig", scenes, num_labels=19), 4),
    "bloom": (language(hugging_face("BloomForCausalLM", "BloomConfig", **BLOOM), 256), 4),
    "mamba2": (language(hugging_face("Mamba2ForCausalLM", "Mamba2Config", **MAMBA2), 64), 2),
    "longformer": (language(hugging_face("LongformerForMaskedLM", "LongformerConfig", **LONGFORMER), 512), 4),
    "olmoe": (language(hugging_face("OlmoeForCausalLM", "OlmoeConfig", **OLMOE), 128), 4),
    "diffusers_unet2d": (PIXELS, 4), "diffusers_autoencoder_kl": (CODER, 4), "diffusers_dit": (DIT, 4), "diffusers_sd3": (SD3, 4),
    "diffusers_controlnet": (CONTROL, 4),
    "fasterrcnn_mobilenet": (detected("fasterrcnn_mobilenet_v3_large_fpn", 320), 4),
    "retinanet_resnet50": (detected("retinanet_resnet50_fpn", 320), 4),
    "ssdlite320_mobilenet": (detected("ssdlite320_mobilenet_v3_large", 320), 4),
    "fcos_resnet50": (detected("fcos_resnet50_fpn", 320), 4),
    "lraspp_mobilenet": (segmented("lraspp_mobilenet_v3_large"), 4), "deeplabv3_mobilenet": (segmented("deeplabv3_mobilenet_v3_large"), 4),
    "own_gru_ctc": (gru, 8), "own_seq2seq_transformer": (seq2seq, 8), "own_hinge_gan_spectral": (hinge_gan, 16), "own_ppo": (ppo, 64),
    "own_clip": (contrastive, 16), "own_experts": (experts, 8), "own_gradient_penalty": (gradient_penalty, 16),
    "own_averages": (averaged, 8), "own_physics": (physics, 256), "own_accumulate_clip": (accumulated, 8),
    "lora_dropout": (adapted(0.05), 2), "lora_all_linear_checkpoints": (adapted(0.05, True, True), 2), "qlora": (quantized, 2), "trainer_by_hand": (trainer, 4),
    "transformers_trainer": (transformers_trainer, 4),
}
