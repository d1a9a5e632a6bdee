"""Models and loops that bench/record/recordings.py records: make(batch) returns models, optimizers and a step. What a model's
library is, is imported when it is asked for."""
import contextlib

import models as tests  # of tests/python
import torch
from torch import nn
from torch.nn import functional as F

CUDA = "cuda"


def optimizer_of(word, parameters):
    parameters = [p for p in parameters if p.requires_grad]
    if word == "momentum":
        return torch.optim.SGD(parameters, 0.1, momentum=0.9)
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[word](parameters)


def trained(model, optimizer, batch_of, loss, autocast=None):
    """The usual loop, which holds the batch and the loss until the step ends."""
    model.train()
    optimizer = optimizer_of(optimizer, model.parameters())

    def step():
        optimizer.zero_grad()
        given = batch_of()
        with torch.autocast(CUDA, autocast) if autocast else contextlib.nullcontext():
            value = loss(model, given)
        value.backward()
        optimizer.step()
    return [model], [optimizer], step


def longs(*shape):
    return torch.zeros(*shape, dtype=torch.long, device=CUDA)


def floats(*shape):
    return torch.empty(*shape, device=CUDA)


# by library ----------------------------------------------------------------------------------------------------------------


def vision(build, image=224, optimizer="momentum", autocast=None, head=lambda output: output):
    """A network of images under cross entropy."""
    def make(batch):
        def loss(model, given):
            return F.cross_entropy(head(model(given[0])), given[1])
        return trained(build(), optimizer, lambda: (floats(batch, 3, image, image), longs(batch)), loss, autocast)
    return make


def torchvision(name, **options):
    def build():
        import torchvision
        found = torchvision.models
        for part in name.split("."):
            found = getattr(found, part)
        return found(**options)
    return build


def timm(name):
    def build():
        import timm as library
        return library.create_model(name)
    return build


def hugging_face(kind, config, **options):
    """A model of transformers by the names of its classes, with no weights loaded."""
    def build():
        import transformers
        made = getattr(transformers, config)(**options)
        if hasattr(made, "use_cache"):
            made.use_cache = False
        return getattr(transformers, kind)(made)
    return build


def language(build, length, autocast=None, dtype=None, inputs=None):
    """A model of Hugging Face that makes its own loss of labels."""
    def make(batch):
        def batch_of():
            given = inputs(batch) if inputs else {"input_ids": longs(batch, length)}
            given.setdefault("labels", given.get("input_ids"))
            return given
        model = build()
        return trained(model.to(dtype) if dtype else model, "adamw", batch_of, lambda model, given: model(**given).loss, autocast)
    return make


LLAMA = dict(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=4,
             vocab_size=32000, max_position_embeddings=2048)
WHISPER = dict(d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6, decoder_attention_heads=6,
               decoder_ffn_dim=1536, encoder_ffn_dim=1536)
MIXTRAL = dict(hidden_size=512, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4,
               num_local_experts=4, vocab_size=8000)


def lora():
    import peft
    model = hugging_face("LlamaForCausalLM", "LlamaConfig", **LLAMA)()
    config = peft.LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    return peft.get_peft_model(model, config, autocast_adapter_dtype=False)


def heard(batch):
    return {"input_features": floats(batch, 80, 3000), "labels": longs(batch, 64)}


def translated(batch):
    return {"input_ids": longs(batch, 256), "labels": longs(batch, 64)}


def diffusion(batch):
    from diffusers import UNet2DConditionModel
    down = ("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D")
    up = ("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D")
    model = UNet2DConditionModel(sample_size=32, in_channels=4, out_channels=4, layers_per_block=2, block_out_channels=(160, 320, 640),
                                 down_block_types=down, up_block_types=up, cross_attention_dim=768, attention_head_dim=8)

    def loss(model, given):
        return F.mse_loss(model(*given).sample, given[0])
    return trained(model, "adamw", lambda: (floats(batch, 4, 32, 32), longs(batch), floats(batch, 77, 768)), loss)


def detector(batch):
    import torchvision
    model = torchvision.models.detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None)

    def batch_of():
        images = [floats(3, 512, 512) for _ in range(batch)]
        truth = [{"boxes": torch.tensor([[10.0, 10.0, 200.0, 200.0]], device=CUDA),
                  "labels": torch.ones(1, dtype=torch.long, device=CUDA),
                  "masks": torch.zeros(1, 512, 512, dtype=torch.uint8, device=CUDA)} for _ in range(batch)]
        return images, truth
    return trained(model, "momentum", batch_of, lambda model, given: sum(model(*given).values()))


# own loops -----------------------------------------------------------------------------------------------------------------


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.memory = nn.Embedding(10000, 512), nn.LSTM(512, 512, 2, dropout=0.5, batch_first=True)
        self.out = nn.Linear(512, 10000)

    def forward(self, tokens):
        return self.out(self.memory(self.words(tokens))[0])


def reader(batch):
    model = Reader()
    optimizer = optimizer_of("adam", model.parameters())

    def step():
        optimizer.zero_grad()
        tokens = longs(batch, 64)
        loss = F.cross_entropy(model(tokens).view(-1, 10000), tokens.view(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return [model], [optimizer], step


def accumulated(batch):
    model = torchvision("resnet50")()
    optimizer, scaler = optimizer_of("momentum", model.parameters()), torch.amp.GradScaler(CUDA)

    def step():
        optimizer.zero_grad()
        for _ in range(3):
            images, labels = floats(batch, 3, 224, 224), longs(batch)
            with torch.autocast(CUDA, torch.float16):
                loss = F.cross_entropy(model(images), labels) / 3
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    return [model], [optimizer], step


def up(inputs, outputs, *shape):
    return [nn.ConvTranspose2d(inputs, outputs, *shape, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(True)]


def down(inputs, outputs):
    return [nn.Conv2d(inputs, outputs, 4, 2, 1), nn.BatchNorm2d(outputs), nn.LeakyReLU(0.2, True)]


def adversaries(batch):
    generator = nn.Sequential(*up(100, 512, 4, 1, 0), *up(512, 256, 4, 2, 1), *up(256, 128, 4, 2, 1), *up(128, 64, 4, 2, 1),
                              nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh())
    critic = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2, True), *down(64, 128), *down(128, 256), *down(256, 512),
                           nn.Conv2d(512, 1, 4, 1, 0), nn.Flatten())
    generates, judges = (optimizer_of("adam", model.parameters()) for model in (generator, critic))
    entropy = nn.BCEWithLogitsLoss()

    def step():
        real, noise = floats(batch, 3, 64, 64), torch.randn(batch, 100, 1, 1, device=CUDA)
        judges.zero_grad()
        made = generator(noise)
        loss = entropy(critic(real), torch.ones(batch, 1, device=CUDA)) + entropy(critic(made.detach()), torch.zeros(batch, 1, device=CUDA))
        loss.backward()
        judges.step()
        generates.zero_grad()
        loss = entropy(critic(made), torch.ones(batch, 1, device=CUDA))
        loss.backward()
        generates.step()
    return [generator, critic], [generates, judges], step


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(20000, 64, mode="sum") for _ in range(8))
        self.below = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 64), nn.ReLU())
        self.above = nn.Sequential(nn.Linear(64 + 36, 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, numbers, indices):
        x = self.below(numbers)
        features = torch.stack([x] + [table(indices[:, k]) for k, table in enumerate(self.tables)], 1)
        products = torch.bmm(features, features.transpose(1, 2))
        left, right = torch.tril_indices(9, 9, -1, device=numbers.device).unbind()
        return self.above(torch.cat([x, products[:, left, right]], 1))


def recommender(batch):
    model = Recommender()
    optimizer = optimizer_of("adam", model.parameters())

    def step():
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(floats(batch, 13), longs(batch, 8, 4)), torch.zeros(batch, 1, device=CUDA))
        loss.backward()
        optimizer.step()
    return [model], [optimizer], step


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.cell = nn.Embedding(8000, 256), nn.GRUCell(512, 256)
        self.encoder, self.out = nn.GRU(256, 256, batch_first=True), nn.Linear(256, 8000)

    def forward(self, source, target):
        states, last = self.encoder(self.words(source))
        last, outputs = last[0], []
        context = torch.zeros_like(last)
        for t in range(target.shape[1]):
            last = self.cell(torch.cat([self.words(target[:, t]), context], 1), last)
            attention = torch.softmax((states @ last[:, :, None]).squeeze(2), 1)
            context = (attention[:, None] @ states).squeeze(1)
            outputs.append(self.out(last))
        return torch.stack(outputs, 1)


def translator(batch):
    model = Translator()
    optimizer = optimizer_of("adam", model.parameters())

    def step():
        optimizer.zero_grad()
        words = longs(batch, 24)
        loss = F.cross_entropy(model(words, words).flatten(0, 1), words.flatten())
        loss.backward()
        optimizer.step()
    return [model], [optimizer], step


class Custom(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1024))
        self.layers = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = tests.Scale.apply(torch.utils.checkpoint.checkpoint(lambda y: F.gelu(layer(y)), x, use_reentrant=False), self.weight)
        return x


def custom(batch):
    import torch.utils.checkpoint  # noqa: F401
    model = Custom()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step():
        optimizer.zero_grad()
        loss = model(floats(batch, 1024)).pow(2).mean()
        loss.backward()
        optimizer.step()
    return [model], [optimizer], step


# all of them: make, batch, globs of checkpointed modules -------------------------------------------------------------------

BF16 = torch.bfloat16
GPT2 = hugging_face("GPT2LMHeadModel", "GPT2Config")
ALL = {
    "lstm_lm": (reader, 16, ""), "custom_function_checkpoint": (custom, 256, ""), "accumulate_amp_scaler": (accumulated, 8, ""),
    "gan_two_optimizers": (adversaries, 32, ""), "dlrm": (recommender, 2048, ""), "seq2seq_loop": (translator, 16, ""),
    "llama_small_bf16": (language(hugging_face("LlamaForCausalLM", "LlamaConfig", **LLAMA), 512, dtype=BF16), 2, "model.layers.*"),
    "llama_lora_bf16": (language(lora, 512, dtype=BF16), 2, "base_model.model.model.layers.*"),
    "resnet50": (vision(torchvision("resnet50")), 8, "layer?.*"),
    "resnet50_amp_bf16": (vision(torchvision("resnet50"), autocast=BF16), 8, "layer?.*"),
    "maskrcnn": (detector, 2, ""), "gpt2_amp_bf16": (language(GPT2, 1024, autocast=BF16), 4, "transformer.h.*"),
    "mamba_small": (language(hugging_face("MambaForCausalLM", "MambaConfig", hidden_size=256, num_hidden_layers=4, vocab_size=8000), 24),
                    2, "backbone.layers.*"),
    "t5_small": (language(hugging_face("T5ForConditionalGeneration", "T5Config", decoder_start_token_id=0), 256, inputs=translated),
                 4, "encoder.block.*,decoder.block.*"),
    "mixtral_small": (language(hugging_face("MixtralForCausalLM", "MixtralConfig", **MIXTRAL), 128), 2, "model.layers.*"),
    "gpt2": (language(GPT2, 1024), 4, "transformer.h.*"),
    "swin_t": (vision(torchvision("swin_t"), optimizer="adamw"), 4, "features.*.*"),
    "unet_sd_small": (diffusion, 2, ""),
    "vit_b_16": (vision(torchvision("vit_b_16"), optimizer="adamw"), 4, "encoder.layers.*"),
    "whisper_tiny": (language(hugging_face("WhisperForConditionalGeneration", "WhisperConfig", **WHISPER), 0, inputs=heard), 4,
                     "model.encoder.layers.*,model.decoder.layers.*"),
    "timm_convnextv2_tiny": (vision(timm("convnextv2_tiny"), optimizer="adamw"), 4, "stages.*.blocks.*"),
    "timm_xcit_tiny": (vision(timm("xcit_tiny_12_p16_224"), optimizer="adamw"), 4, ""),
    "timm_maxvit_tiny": (vision(timm("maxvit_tiny_tf_224"), optimizer="adamw"), 4, ""),
    "timm_dm_nfnet_f0": (vision(timm("dm_nfnet_f0")), 4, ""),
    "timm_levit_128": (vision(timm("levit_128"), optimizer="adamw"), 8, ""),
    "densenet121": (vision(torchvision("densenet121")), 8, "features.denseblock?.*"),
    "deeplabv3_resnet50": (vision(torchvision("segmentation.deeplabv3_resnet50", weights_backbone=None, num_classes=21),
                                  head=lambda output: output["out"].mean((2, 3))), 2, ""),
    "bert_base": (language(hugging_face("BertForMaskedLM", "BertConfig"), 128), 4, ""),
    "timm_hrnet_w18": (vision(timm("hrnet_w18_small")), 4, ""),
    "timm_mixer_b16": (vision(timm("mixer_b16_224"), optimizer="adamw"), 4, ""),
}

# held out: blocks of models that checkpoints were not made with
MORE_BLOCKS = {
    "convnext_tiny": (vision(torchvision("convnext_tiny"), optimizer="adamw"), 4, "features.*.*"),
    "regnet_y_400mf": (vision(torchvision("regnet_y_400mf")), 4, "trunk_output.*.*"),
    "mobilenet_v3_large": (vision(torchvision("mobilenet_v3_large")), 4, "features.*"),
    "googlenet": (vision(torchvision("googlenet", aux_logits=False, init_weights=False)), 4, "inception*"),
    "timm_mixer_s16": (vision(timm("mixer_s16_224"), optimizer="adamw"), 4, "blocks.*"),
    "timm_xcit_nano": (vision(timm("xcit_nano_12_p16_224"), optimizer="adamw"), 4, "blocks.*"),
    "timm_maxvit_pico": (vision(timm("maxvit_pico_rw_256"), 256, optimizer="adamw"), 2, "stages.*.blocks.*"),
    "timm_levit_128": (ALL["timm_levit_128"][0], 4, "stages.*.blocks.*"),
    "bert_base": (ALL["bert_base"][0], 4, "bert.encoder.layer.*"),
    "deeplabv3_resnet50": (ALL["deeplabv3_resnet50"][0], 2, "backbone.layer?.*"),
    "unet_sd_small": (ALL["unet_sd_small"][0], 2, "*.resnets.*,*.attentions.*"),
}


def with_blocks():
    """All that have globs."""
    return {**{name: row for name, row in ALL.items() if row[2]}, **MORE_BLOCKS}
