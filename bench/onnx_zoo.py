"""Models that people export, as bench/onnx_models.py tries them: of each how it is made, an example of what it is given, and what is
trained with it. All are their libraries' own, with random weights; those of transformers and diffusers are made small where only the
number of their blocks changes."""
import torch


class First(torch.nn.Module):
    """A model that gives what it says first: a tensor, not a dictionary. Where it is measured no masks are given: all of their numbers
    are ones, and then transformers leaves them out, which fake tensors do not let it see."""

    measured = False

    def __init__(self, model, *names, **always):
        super().__init__()
        self.model, self.names, self.always = model, names, always

    def forward(self, *given):
        rest, named = given[:len(given) - len(self.names)], dict(zip(self.names, given[len(given) - len(self.names):]))
        if self.measured:
            named.pop("attention_mask", None)
        out = self.model(*rest, **named, **self.always)
        if isinstance(out, dict):
            out = next(iter(out.values()))
        return out if torch.is_tensor(out) else out[0]


class Model:
    """`make()` is the model, `given(batch)` its inputs; `loss` as snsim has it."""

    def __init__(self, make, given, loss="cross_entropy"):
        self.make, self.given, self.loss = make, given, loss


def images(side, channels=3):
    return lambda batch: (torch.randn(batch, channels, side, side),)


def tokens(length, *more):
    """Whole numbers, and masks of ones as `more` of them as there are names."""
    return lambda batch: tuple([torch.zeros(batch, length, dtype=torch.int64)] + [torch.ones(batch, length, dtype=torch.int64) for _ in more])


def of_torchvision(name, side=224, **options):
    def make():
        import torchvision
        model = torchvision.models.get_model(name, weights=None, **options)
        return First(model)
    return Model(make, images(side))


def of_timm(name, side=224):
    def make():
        import timm
        return timm.create_model(name)
    return Model(make, images(side))


def of_transformers(kind, head, given, *names, loss="cross_entropy", **config):
    def make():
        import transformers
        said = getattr(transformers, f"{kind}Config")(**config)
        if hasattr(said, "use_cache"):
            said.use_cache = False
        return First(getattr(transformers, f"{kind}{head}")(said), *names)
    return Model(make, given, loss)


def of_diffusers(kind, given, *names, **config):
    def make():
        import diffusers
        return First(getattr(diffusers, kind)(**config), *names, return_dict=False)
    return Model(make, given, "mse")


BERT = {"num_hidden_layers": 2, "vocab_size": 8000}
DECODER = {"num_hidden_layers": 2, "vocab_size": 8000, "hidden_size": 512, "num_attention_heads": 8}
LLAMA = DECODER | {"num_key_value_heads": 4, "intermediate_size": 1024}
MASKED = tokens(256, "attention_mask")
VIT = {"num_hidden_layers": 2}
STEP = lambda batch: torch.zeros(batch, dtype=torch.int64)
DENOISER = {"block_out_channels": (64, 128), "norm_num_groups": 32}

TORCHVISION = {f"tv/{name}": of_torchvision(name) for name in (
    "alexnet", "vgg11_bn", "resnet18", "resnext50_32x4d", "densenet121", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0",
    "regnet_y_400mf", "shufflenet_v2_x1_0", "squeezenet1_1", "mnasnet1_0", "convnext_tiny", "vit_b_16", "swin_t", "swin_v2_t", "maxvit_t")}
TORCHVISION |= {"tv/inception_v3": of_torchvision("inception_v3", 299, aux_logits=False, init_weights=False),
                "tv/deeplabv3_resnet50": of_torchvision("deeplabv3_resnet50", weights_backbone=None),
                "tv/lraspp_mobilenet_v3_large": of_torchvision("lraspp_mobilenet_v3_large", weights_backbone=None)}

TIMM = {f"timm/{name}": of_timm(name) for name in (
    "convnextv2_atto", "deit3_small_patch16_224", "mixer_s16_224", "resmlp_12_224", "gmlp_ti16_224", "beit_base_patch16_224",
    "levit_128s", "xcit_nano_12_p16_224", "cait_xxs24_224", "pvt_v2_b0", "poolformer_s12", "efficientformer_l1", "mobileone_s0",
    "repvgg_a0", "resnetv2_50d_gn", "nfnet_l0", "tf_efficientnet_b0", "hrnet_w18_small", "dla34", "res2net50_26w_4s", "resnest14d",
    "ghostnet_100", "edgenext_xx_small", "tiny_vit_5m_224", "visformer_tiny", "mobilenetv4_conv_small",
    "cspdarknet53", "skresnet18", "ese_vovnet19b_dw", "convmixer_1024_20_ks9_p14", "vit_tiny_r_s16_p8_224", "dpn68", "inception_next_tiny",
    "focalnet_tiny_srf", "eca_nfnet_l0", "resnetv2_50x1_bit", "repghostnet_100", "davit_tiny", "swinv2_cr_tiny_224", "vit_small_patch16_224")}
TIMM |= {"timm/mobilevit_xs": of_timm("mobilevit_xs", 256), "timm/mobilevitv2_050": of_timm("mobilevitv2_050", 256),
         "timm/fastvit_t8": of_timm("fastvit_t8", 256), "timm/eva02_tiny_patch14_224": of_timm("eva02_tiny_patch14_224"),
         "timm/coatnet_nano_rw_224": of_timm("coatnet_nano_rw_224"), "timm/vit_small_patch14_dinov2": of_timm("vit_small_patch14_dinov2", 518)}

TRANSFORMERS = {
    "hf/bert_classes": of_transformers("Bert", "ForSequenceClassification", MASKED, "attention_mask", **BERT),
    "hf/bert_words": of_transformers("Bert", "ForMaskedLM", tokens(256), **BERT),
    "hf/roberta": of_transformers("Roberta", "ForSequenceClassification", MASKED, "attention_mask", **BERT),
    "hf/distilbert": of_transformers("DistilBert", "ForSequenceClassification", MASKED, "attention_mask", n_layers=2, vocab_size=8000),
    "hf/albert": of_transformers("Albert", "ForSequenceClassification", tokens(256), num_hidden_layers=2, hidden_size=512, num_attention_heads=8, intermediate_size=1024),
    "hf/electra": of_transformers("Electra", "ForSequenceClassification", tokens(256), **BERT),
    "hf/deberta_v2": of_transformers("DebertaV2", "ForSequenceClassification", tokens(256), num_hidden_layers=2, hidden_size=512, num_attention_heads=8, intermediate_size=1024, vocab_size=8000),
    "hf/gpt2": of_transformers("GPT2", "LMHeadModel", tokens(256), n_layer=2, vocab_size=8000),
    "hf/gpt_neo": of_transformers("GPTNeo", "ForCausalLM", tokens(256), num_layers=2, attention_types=[[["global", "local"], 1]], hidden_size=512, num_heads=8, vocab_size=8000),
    "hf/gpt_neox": of_transformers("GPTNeoX", "ForCausalLM", tokens(256), intermediate_size=2048, **DECODER),
    "hf/opt": of_transformers("OPT", "ForCausalLM", tokens(256), ffn_dim=2048, word_embed_proj_dim=512, **DECODER),
    "hf/bloom": of_transformers("Bloom", "ForCausalLM", tokens(256), n_layer=2, hidden_size=512, n_head=8, vocab_size=8000),
    "hf/llama": of_transformers("Llama", "ForCausalLM", tokens(256), **LLAMA),
    "hf/mistral": of_transformers("Mistral", "ForCausalLM", tokens(256), **LLAMA),
    "hf/qwen2": of_transformers("Qwen2", "ForCausalLM", tokens(256), **LLAMA),
    "hf/qwen3": of_transformers("Qwen3", "ForCausalLM", tokens(256), head_dim=64, **LLAMA),
    "hf/gemma": of_transformers("Gemma", "ForCausalLM", tokens(256), head_dim=64, pad_token_id=0, **LLAMA),
    "hf/phi3": of_transformers("Phi3", "ForCausalLM", tokens(256), pad_token_id=0, **LLAMA),
    "hf/t5": of_transformers("T5", "ForConditionalGeneration", tokens(256, "decoder_input_ids"), "decoder_input_ids", num_layers=2, vocab_size=8000),
    "hf/bart": of_transformers("Bart", "ForConditionalGeneration", tokens(256, "decoder_input_ids"), "decoder_input_ids", encoder_layers=2, decoder_layers=2, vocab_size=8000, d_model=512,
                               encoder_attention_heads=8, decoder_attention_heads=8),
    "hf/vit": of_transformers("ViT", "ForImageClassification", images(224), **VIT),
    "hf/deit": of_transformers("DeiT", "ForImageClassification", images(224), **VIT),
    "hf/dinov2": of_transformers("Dinov2", "ForImageClassification", images(224), **VIT),
    "hf/swin": of_transformers("Swin", "ForImageClassification", images(224), depths=[2, 2], num_heads=[3, 6]),
    "hf/segformer": of_transformers("Segformer", "ForSemanticSegmentation", images(224)),
    "hf/convnext": of_transformers("ConvNext", "ForImageClassification", images(224)),
    "hf/mobilevit": of_transformers("MobileViT", "ForImageClassification", images(256)),
    "hf/whisper": of_transformers("Whisper", "ForConditionalGeneration", lambda batch: (torch.randn(batch, 80, 400), torch.zeros(batch, 32, dtype=torch.int64)),
                                  "decoder_input_ids", encoder_layers=2, decoder_layers=2, max_source_positions=200, vocab_size=8000, d_model=256, encoder_attention_heads=4, decoder_attention_heads=4, pad_token_id=0, bos_token_id=0, eos_token_id=0),
    "hf/clip": of_transformers("CLIPVision", "ModelWithProjection", images(224), num_hidden_layers=2),
    "hf/siglip": of_transformers("Siglip", "ForImageClassification", images(224), vision_config={"num_hidden_layers": 2, "vision_use_head": False}, text_config={"num_hidden_layers": 1})}

DIFFUSERS = {
    "diffusers/unet2d": of_diffusers("UNet2DModel", lambda batch: (torch.randn(batch, 3, 32, 32), STEP(batch)), sample_size=32, layers_per_block=1,
                                     down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"), **DENOISER),
    "diffusers/unet2d_condition": of_diffusers("UNet2DConditionModel", lambda batch: (torch.randn(batch, 4, 32, 32), STEP(batch), torch.randn(batch, 77, 256)), sample_size=32,
                                               layers_per_block=1, cross_attention_dim=256, attention_head_dim=8, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                                               up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), **DENOISER),
    "diffusers/vae": of_diffusers("AutoencoderKL", images(64), block_out_channels=(64, 128), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2),
    "diffusers/vq": of_diffusers("VQModel", images(64), block_out_channels=(64, 128), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2),
    "diffusers/dit": of_diffusers("DiTTransformer2DModel", lambda batch: (torch.randn(batch, 4, 32, 32), STEP(batch), STEP(batch)), "timestep", "class_labels",
                                  num_layers=2, sample_size=32, num_attention_heads=8, attention_head_dim=64),
    "diffusers/sd3": of_diffusers("SD3Transformer2DModel", lambda batch: (torch.randn(batch, 16, 32, 32), torch.randn(batch, 77, 256), torch.randn(batch, 128), STEP(batch)),
                                  "encoder_hidden_states", "pooled_projections", "timestep", num_layers=2, sample_size=32, num_attention_heads=8, attention_head_dim=64,
                                  joint_attention_dim=256, caption_projection_dim=512, pooled_projection_dim=128, pos_embed_max_size=32)}

MODELS = TORCHVISION | TIMM | TRANSFORMERS | DIFFUSERS
