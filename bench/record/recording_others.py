"""Models and loops again that nobody had tried: pictures in time, detectors of transformers, pictures with words, state spaces and recurrences,
optimizers of other kinds, loops by accelerate and by hand. bench/record/recordings.py --foreign has them too. make(batch) returns models,
optimizers and a step."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from recording_models import BF16, CUDA, floats, hugging_face, language, longs, optimizer_of, torchvision, trained
from recording_foreign import diffusers, of_noise, pictured

DETR = dict(use_timm_backbone=False, use_pretrained_backbone=False, d_model=128, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=256, decoder_ffn_dim=256,
            encoder_attention_heads=4, decoder_attention_heads=4, num_queries=50)
VILT = dict(hidden_size=192, num_hidden_layers=3, num_attention_heads=3, intermediate_size=384, vocab_size=4000, image_size=128, num_labels=100)
XLNET = dict(d_model=256, n_layer=3, n_head=4, d_inner=512, vocab_size=4000)
RWKV = dict(hidden_size=128, attention_hidden_size=128, num_hidden_layers=2, intermediate_size=256, vocab_size=4000, context_length=64)
SAM_EYE = dict(hidden_size=192, num_pos_feats=32, output_channels=64, num_hidden_layers=2, num_attention_heads=3, image_size=256, mlp_dim=384,
               global_attn_indexes=[1])
TIMESFORMER = dict(hidden_size=192, num_hidden_layers=3, num_attention_heads=3, intermediate_size=384, num_frames=4, image_size=112)
LAYOUT = dict(hidden_size=192, num_hidden_layers=3, num_attention_heads=3, intermediate_size=384, vocab_size=4000, coordinate_size=32, shape_size=32,
              input_size=112)
FUNNEL = dict(d_model=192, n_head=3, d_head=64, d_inner=384, block_sizes=[1, 1, 1], vocab_size=4000, num_decoder_layers=1)
CONVBERT = dict(hidden_size=192, num_hidden_layers=3, num_attention_heads=4, intermediate_size=384, vocab_size=4000, embedding_size=128)
SWIN2 = dict(embed_dim=48, depths=[1, 1, 2, 1], num_heads=[2, 4, 8, 16], window_size=7, image_size=224)
XLSTM = dict(hidden_size=256, num_blocks=2, num_heads=4, vocab_size=4000, chunk_size=32)
JAMBA = dict(hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, num_experts=4, attn_layer_period=4,
             attn_layer_offset=2, vocab_size=4000, use_mamba_kernels=False, mamba_dt_rank=8)
NEXT = dict(hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=32, num_experts=4,
            num_experts_per_tok=2, moe_intermediate_size=64, shared_expert_intermediate_size=64, linear_num_key_heads=2, linear_num_value_heads=4,
            linear_key_head_dim=32, linear_value_head_dim=32, vocab_size=4000)
PERCEIVER = dict(num_latents=32, d_latents=128, d_model=96, num_blocks=1, num_self_attends_per_block=2, num_self_attention_heads=4,
                 num_cross_attention_heads=4, vocab_size=262, max_position_embeddings=256)


# pictures in time -----------------------------------------------------------------------------------------------------------


def films(name, frames, side, **options):
    """A network of torchvision for videos."""
    def make(batch):
        model = torchvision("video." + name, **options)()
        return trained(model, "momentum", lambda: (floats(batch, 3, frames, side, side), longs(batch)),
                       lambda model, given: F.cross_entropy(model(given[0]), given[1]))
    return make


def volumes(batch):
    """A small U-Net in three dimensions, channels last, in bf16."""
    def block(a, b):
        return nn.Sequential(nn.Conv3d(a, b, 3, padding=1, bias=False), nn.InstanceNorm3d(b, affine=True), nn.LeakyReLU(0.01, True),
                             nn.Conv3d(b, b, 3, padding=1, bias=False), nn.InstanceNorm3d(b, affine=True), nn.LeakyReLU(0.01, True))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([block(1, 16), block(16, 32), block(32, 64)])
            self.ups = nn.ModuleList([nn.ConvTranspose3d(64, 32, 2, 2), nn.ConvTranspose3d(32, 16, 2, 2)])
            self.merge, self.out = nn.ModuleList([block(64, 32), block(32, 16)]), nn.Conv3d(16, 4, 1)

        def forward(self, x):
            seen = []
            for i, each in enumerate(self.down):
                x = each(x if not i else F.max_pool3d(x, 2))
                seen.append(x)
            for i, (up, merge) in enumerate(zip(self.ups, self.merge)):
                x = merge(torch.cat([up(x), seen[1 - i]], 1))
            return self.out(x)
    model = Net().to(memory_format=torch.channels_last_3d)
    return trained(model, "momentum", lambda: (floats(batch, 1, 32, 32, 32), longs(batch, 32, 32, 32)),
                   lambda model, given: F.cross_entropy(model(given[0]), given[1]), BF16)


def deformed(batch):
    """Convolutions whose places are learned."""
    from torchvision.ops import DeformConv2d

    class Layer(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.places, self.body = nn.Conv2d(a, 27, 3, padding=1), DeformConv2d(a, b, 3, padding=1)

        def forward(self, x):
            at, much = self.places(x).split((18, 9), 1)
            return F.relu(self.body(x, at, much.sigmoid()))
    model = nn.Sequential(Layer(3, 32), nn.MaxPool2d(2), Layer(32, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return trained(model, "adam", lambda: (floats(batch, 3, 64, 64), longs(batch)), lambda model, given: F.cross_entropy(model(given[0]), given[1]))


# transformers ---------------------------------------------------------------------------------------------------------------


def small_resnet():
    import transformers
    return transformers.ResNetConfig(embedding_size=32, hidden_sizes=[32, 64, 96, 128], depths=[1, 1, 1, 1], layer_type="basic",
                                     out_features=["stage4"])


def detected(kind, config):
    """A detector of transformers under losses of its scores and boxes: whose own loss looks for pairs on the CPU."""
    def make(batch):
        import transformers
        options = getattr(transformers, config)(backbone_config=small_resnet(), **DETR)
        model = getattr(transformers, kind)(options)

        def loss(model, given):
            out = model(pixel_values=given)
            return out.logits.float().logsumexp(-1).mean() + out.pred_boxes.abs().mean()
        return trained(model, "adamw", lambda: floats(batch, 3, 256, 256), loss)
    return make


def asked(batch):
    return {"input_ids": longs(batch, 40), "pixel_values": floats(batch, 3, 128, 128),
            "pixel_mask": torch.ones(batch, 128, 128, dtype=torch.long, device=CUDA), "labels": floats(batch, 100)}


def clips(batch):
    return {"pixel_values": floats(batch, 4, 3, 112, 112), "labels": longs(batch)}


def pages(batch):
    return {"input_ids": longs(batch, 64), "bbox": longs(batch, 64, 4), "pixel_values": floats(batch, 3, 112, 112), "labels": longs(batch, 64)}


def pictures(batch):
    return {"pixel_values": floats(batch, 3, 224, 224), "labels": longs(batch)}


def letters(batch):
    return {"inputs": longs(batch, 256), "labels": longs(batch, 256)}


def segmented_anything(batch):
    """SAM's decoder of masks from points, with its encoder frozen."""
    import transformers
    config = transformers.SamConfig(vision_config=SAM_EYE, prompt_encoder_config=dict(hidden_size=64, image_size=256, image_embedding_size=16),
                                    mask_decoder_config=dict(hidden_size=64, mlp_dim=128, num_attention_heads=4, iou_head_hidden_dim=64))
    model = transformers.SamModel(config)
    model.vision_encoder.requires_grad_(False)

    def loss(model, given):
        out = model(pixel_values=given[0], input_points=given[1], multimask_output=False)
        return F.binary_cross_entropy_with_logits(out.pred_masks.squeeze(1, 2), given[2])
    return trained(model, "adamw", lambda: (floats(batch, 3, 256, 256), floats(batch, 1, 2, 2), floats(batch, 64, 64)), loss)


def seen_and_read(batch):
    """CLIP's two towers and its loss."""
    import transformers
    small = dict(hidden_size=192, num_hidden_layers=3, num_attention_heads=3, intermediate_size=384)
    config = transformers.CLIPConfig(text_config=dict(small, vocab_size=4000, eos_token_id=2), vision_config=dict(small, image_size=112, patch_size=16),
                                     projection_dim=128)
    return trained(transformers.CLIPModel(config), "adamw",
                   lambda: {"input_ids": longs(batch, 32), "pixel_values": floats(batch, 3, 112, 112), "return_loss": True},
                   lambda model, given: model(**given).loss)


def of_tokens(kind, config, options, length=64):
    build = hugging_face(kind, config, **options)
    return language(lambda: build().to(CUDA), length), 4  # XLNet makes parameters of torch.FloatTensor, which is on the CPU


# diffusers ------------------------------------------------------------------------------------------------------------------


def flux(model, given):
    noisy, words, pooled, when, aim, places, where = given
    out = model(hidden_states=noisy, encoder_hidden_states=words, pooled_projections=pooled, timestep=when, img_ids=where, txt_ids=places)
    return F.mse_loss(out.sample, aim)


def flux_given(n):
    return (floats(n, 256, 16), floats(n, 64, 256), floats(n, 128), floats(n), floats(n, 256, 16), floats(64, 3), floats(256, 3))


FLUX = diffusers("FluxTransformer2DModel", flux_given, flux, patch_size=1, in_channels=16, num_layers=2, num_single_layers=3, attention_head_dim=32,
                 num_attention_heads=8, joint_attention_dim=256, pooled_projection_dim=128, axes_dims_rope=(8, 12, 12))
FILM = diffusers("WanTransformer3DModel", lambda n: (floats(n, 16, 4, 16, 16), longs(n), floats(n, 32, 256), floats(n, 16, 4, 16, 16)), of_noise,
                 num_attention_heads=4, attention_head_dim=48, text_dim=256, freq_dim=64, ffn_dim=384, num_layers=3)


def of_styles(model, given):
    out = model(given[0], encoder_hidden_states=given[1], timestep=given[2], added_cond_kwargs={"resolution": None, "aspect_ratio": None})
    return out.sample.pow(2).mean()


PIXART = diffusers("PixArtTransformer2DModel", lambda n: (floats(n, 4, 32, 32), floats(n, 32, 256), longs(n)), of_styles, num_attention_heads=4,
                   attention_head_dim=48, cross_attention_dim=192, num_layers=3, sample_size=32, caption_channels=256, use_additional_conditions=False)

# optimizers -----------------------------------------------------------------------------------------------------------------


def stacked(width=512, layers=4):
    return nn.Sequential(*[each for _ in range(layers) for each in (nn.Linear(width, width, bias=False), nn.GELU())])


def updated_by(build):
    """The same net under another optimizer."""
    def make(batch):
        model = stacked()
        optimizer = build(model.parameters())

        def step():
            optimizer.zero_grad()
            model(floats(batch, 512)).pow(2).mean().backward()
            optimizer.step()
        return [model], [optimizer], step
    return make


def in_backward(batch):
    """An optimizer a parameter, each of which updates as soon as its gradient is there and lets go of it."""
    model = stacked()
    optimizers = {p: torch.optim.AdamW([p]) for p in model.parameters()}

    def update(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)

    def step():
        model(floats(batch, 512)).pow(2).mean().backward()
    return [model], list(optimizers.values()), step


# loops ----------------------------------------------------------------------------------------------------------------------


def accelerated(batch):
    """accelerate's own loop: accumulate() over two batches, bf16, clipping; the model and its optimizer prepared."""
    import accelerate
    helper = accelerate.Accelerator(gradient_accumulation_steps=2, mixed_precision="bf16")
    model, optimizer = stacked(), None
    optimizer = torch.optim.AdamW(model.parameters())
    model, optimizer = helper.prepare(model, optimizer)

    def step():
        for _ in range(2):
            with helper.accumulate(model):
                loss = model(floats(batch, 512)).pow(2).mean()
                helper.backward(loss)
                if helper.sync_gradients:
                    helper.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
    return [model], [optimizer.optimizer], step


def scaled(batch):
    """fp16 with a scaler: unscaled, clipped, two optimizers, norms logged."""
    body, head = stacked(), nn.Linear(512, 10)
    optimizers = [torch.optim.SGD(body.parameters(), 0.1, momentum=0.9), torch.optim.AdamW(head.parameters())]
    scaler = torch.amp.GradScaler("cuda")
    log = []

    def step():
        with torch.autocast("cuda", torch.float16):
            loss = F.cross_entropy(head(body(floats(batch, 512))), longs(batch))
        scaler.scale(loss).backward()
        for optimizer in optimizers:
            scaler.unscale_(optimizer)
        log.append(nn.utils.clip_grad_norm_([*body.parameters(), *head.parameters()], 1.0).item())
        for optimizer in optimizers:
            scaler.step(optimizer)
            optimizer.zero_grad()
        scaler.update()
    return [body, head], optimizers, step


def own_checkpoints(batch):
    """Blocks run again by hand: halves of a Sequential, a block in the reentrant form, a block within a block."""
    layers = nn.ModuleList(stacked(256, 2) for _ in range(4))
    optimizer = optimizer_of("adamw", layers.parameters())

    def step():
        optimizer.zero_grad()
        x = floats(batch, 256).requires_grad_()
        x = checkpoint_sequential(layers[0], 2, x, use_reentrant=False)
        x = checkpoint(layers[1], x, use_reentrant=True)
        x = checkpoint(lambda y: layers[3](checkpoint(layers[2], y, use_reentrant=False)), x, use_reentrant=False)
        x.pow(2).mean().backward()
        optimizer.step()
    return [layers], [optimizer], step


def encoded(batch):
    """nn.TransformerEncoder with padding, norms first, and its layers twice: in training, then without gradients in evaluation."""
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, norm_first=True, activation="gelu")
    model = nn.TransformerEncoder(layer, 3, nn.LayerNorm(128), enable_nested_tensor=False)
    optimizer = optimizer_of("adamw", model.parameters())

    def step():
        optimizer.zero_grad()
        padding = torch.zeros(batch, 64, dtype=torch.bool, device=CUDA)
        padding[:, 48:] = True
        model(floats(batch, 64, 128), src_key_padding_mask=padding).pow(2).mean().backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            model(floats(batch, 64, 128), src_key_padding_mask=padding)
        model.train()
    return [model], [optimizer], step


def distilled(batch):
    """A pupil that follows a frozen teacher's scores and one of its inner maps, taken out by a hook."""
    import torchvision as library
    teacher, pupil = library.models.resnet34().eval().requires_grad_(False), library.models.resnet18()
    optimizer = optimizer_of("momentum", pupil.parameters())
    seen = {}
    teacher.layer3.register_forward_hook(lambda module, given, out: seen.__setitem__("teacher", out))
    pupil.layer3.register_forward_hook(lambda module, given, out: seen.__setitem__("pupil", out))

    def step():
        images = floats(batch, 3, 96, 96)
        with torch.no_grad():
            aim = teacher(images)
        scores = pupil(images)
        loss = F.kl_div((scores / 4).log_softmax(1), (aim / 4).softmax(1), reduction="batchmean") * 16
        loss = loss + F.mse_loss(F.normalize(seen["pupil"].flatten(1)), F.normalize(seen["teacher"].flatten(1)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [teacher, pupil], [optimizer], step


def optimizer_rows():
    """Optimizers of torch.optim that keep other states than Adam's."""
    kinds = {"muon": lambda p: torch.optim.Muon(p, 1e-3), "adafactor": torch.optim.Adafactor, "radam": torch.optim.RAdam, "nadam": torch.optim.NAdam,
             "rprop": torch.optim.Rprop, "adadelta": torch.optim.Adadelta, "asgd": torch.optim.ASGD,
             "amsgrad_capturable": lambda p: torch.optim.AdamW(p, amsgrad=True, capturable=True)}
    return {"own_" + name: (updated_by(build), 64) for name, build in kinds.items()}


ALL = {
    "tv_r3d_18": (films("r3d_18", 8, 64), 2), "tv_s3d": (films("s3d", 16, 224), 2), "tv_mvit_v2_s": (films("mvit_v2_s", 16, 224), 2),
    "tv_swin3d_t": (films("swin3d_t", 8, 112), 2), "own_volumes_bf16": (volumes, 2), "own_deformed": (deformed, 4),
    "detr": (detected("DetrForObjectDetection", "DetrConfig"), 2),
    "conditional_detr": (detected("ConditionalDetrForObjectDetection", "ConditionalDetrConfig"), 2),
    "vilt": (pictured("ViltForQuestionAnswering", "ViltConfig", asked, **VILT), 4), "xlnet": of_tokens("XLNetLMHeadModel", "XLNetConfig", XLNET),
    "rwkv": of_tokens("RwkvForCausalLM", "RwkvConfig", RWKV, 32), "sam": (segmented_anything, 2),
    "timesformer": (pictured("TimesformerForVideoClassification", "TimesformerConfig", clips, **TIMESFORMER), 2),
    "layoutlmv3": (pictured("LayoutLMv3ForTokenClassification", "LayoutLMv3Config", pages, **LAYOUT), 4),
    "funnel": of_tokens("FunnelForMaskedLM", "FunnelConfig", FUNNEL), "convbert": of_tokens("ConvBertForMaskedLM", "ConvBertConfig", CONVBERT),
    "swinv2": (pictured("Swinv2ForImageClassification", "Swinv2Config", pictures, **SWIN2), 2), "clip": (seen_and_read, 8),
    "xlstm": of_tokens("xLSTMForCausalLM", "xLSTMConfig", XLSTM), "jamba": of_tokens("JambaForCausalLM", "JambaConfig", JAMBA),
    "qwen3_next": of_tokens("Qwen3NextForCausalLM", "Qwen3NextConfig", NEXT),
    "perceiver": (pictured("PerceiverForMaskedLM", "PerceiverConfig", letters, **PERCEIVER), 4),
    "diffusers_flux": (FLUX, 2), "diffusers_wan": (FILM, 2), "diffusers_pixart": (PIXART, 2),
    **optimizer_rows(), "own_update_in_backward": (in_backward, 64), "own_accelerate": (accelerated, 64), "own_scaler_clip": (scaled, 64),
    "own_checkpoints": (own_checkpoints, 64), "own_encoder_padding": (encoded, 8),
    "own_distilled": (distilled, 8),
}
