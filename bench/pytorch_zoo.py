"""What PyTorch has of snsim's networks: torchvision's own modules, or modules made of the layers that `snsim graph --json` names."""
import json
import subprocess

import torch
from torch.nn import functional as F

from pytorch_network import Network


def torchvision_name(name):
    """What torchvision calls a network of ours, None where it is not torchvision's."""
    same = ("resnext", "wide_resnet", "mobilenet_v3", "efficientnet", "convnext", "vit_", "swin_")
    return name[3:] if name.startswith("tv_") else name if name.startswith(same) else None


def torchvision_network(name):
    """ImportError where there is no torchvision."""
    import torchvision
    plain = {"aux_logits": False, "transform_input": False, "init_weights": False} if name == "inception_v3" else {}
    return torchvision.models.get_model(name, weights=None, **plain)


def described(snsim, name):
    """The network as docs/networks.md has it. RuntimeError with what snsim says."""
    done = subprocess.run([snsim, "graph", "--net", name, "--json"], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)["network"]


def native_dropout(x, layer, training):
    return F.dropout(x, layer["ratio"], training)


class OneEnd(torch.nn.Module):
    """A network of layers whose forward gives one tensor, as torchvision's do."""

    def __init__(self, network):
        super().__init__()
        self.net = Network(network, native_dropout)

    def forward(self, images):
        (end,) = self.net(images)
        return end


def image_network(snsim, name):
    """The network, and the shape of an image. RuntimeError for networks of tokens or of several ends."""
    network = described(snsim, name)
    if "tokens" in network or len(network["input"]) != 3:
        raise RuntimeError(f"{name}: networks of images are measured here, and this is none")
    twin = torchvision_name(name)
    made = torchvision_network(twin) if twin else OneEnd(network)
    if not twin and len(made.net.ends) != 1:
        raise RuntimeError(f"{name} has {len(made.net.ends)} losses; networks of one are measured here")
    return made, network["input"]
