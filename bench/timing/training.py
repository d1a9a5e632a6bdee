"""Networks of timm, and the loops that train them: as timm's tables were made, and as it is done today."""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Optional

import timm
import torch
from timm.models import _registry

FORMS = {"bf16": torch.bfloat16, "fp32": None}  # of today; timm's tables are `amp`


def known_name(name: str) -> str:
    """timm's name of today; what it calls deprecated has another."""
    if timm.is_model(name):
        return name
    today = _registry._deprecated_models.get(name)
    if today:
        return today.split(".")[0]
    raise LookupError(f"timm {timm.__version__} has no such network")


def default_size(name: str) -> Optional[int]:
    config = timm.get_pretrained_cfg(name)
    return config.input_size[-1] if config else None


def built(name: str, size: int) -> torch.nn.Module:
    """For images of that size, which transformers must be told if it is not their own."""
    wanted = [] if default_size(name) == size else [{"img_size": size, "drop_rate": 0.0}]
    for options in (*wanted, {"drop_rate": 0.0}, {}):
        try:
            return timm.create_model(name, **options)
        except TypeError as error:  # knows no such option
            reason = error
    raise reason


def loss_of(output: Any, labels: torch.Tensor) -> torch.Tensor:
    output = output[0] if isinstance(output, (tuple, list)) else output
    return torch.nn.functional.cross_entropy(output, labels)


def as_published(model: torch.nn.Module) -> Any:
    """Optimizer, and what makes a step of images and labels: timm's benchmark of its day."""
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, 1e-4, momentum=0.9, nesterov=True, foreach=False)

    def step(images: torch.Tensor, labels: torch.Tensor) -> None:
        optimizer.zero_grad(set_to_none=False)
        with torch.autocast("cuda", torch.float16):
            output = model(images)
        loss_of(output, labels).backward()
        optimizer.step()
    return optimizer, step


def as_today(model: torch.nn.Module, form: str, device: str = "cuda") -> Any:
    """The same of PyTorch as it starts: gradients let go, parameters updated many at once; in bf16 loss and network under autocast."""
    optimizer = torch.optim.SGD(model.parameters(), 1e-4, momentum=0.9)
    dtype = FORMS[form]

    def step(images: torch.Tensor, labels: torch.Tensor) -> None:
        optimizer.zero_grad()
        with torch.autocast(device, dtype) if dtype else contextlib.nullcontext():
            loss = loss_of(model(images), labels)
        loss.backward()
        optimizer.step()
    return optimizer, step


def maker(name: str, size: int, form: str, build: Callable[..., torch.nn.Module] = built) -> Callable[[int], Any]:
    """What snsim.record() asks of a training loop."""
    def make(batch: int) -> Any:
        model = build(name, size).train()
        optimizer, step = as_published(model) if form == "amp" else as_today(model, form)
        images = torch.randn(batch, 3, size, size, device="cuda")
        labels = torch.zeros(batch, dtype=torch.long, device="cuda")
        return [model], [optimizer], lambda: step(images, labels)
    return make
