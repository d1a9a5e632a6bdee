"""Figures that are known to the byte, of networks of torchvision and transformers; and the program's own dialect `pytorch`,
which shares nothing with the recorder."""
import unittest

from support import ALL, Case, needs

import torch

import dialect
import models
import oracle
import replay


def adamw(model):
    return torch.optim.AdamW(model.parameters())


@needs("torchvision")
class Known(Case):
    def peaks(self, make, batch, globs=None):
        file = self.recorded(make, batch=batch)
        units = replay.checkpointed_peak(file, batch, globs)[0] if globs else None
        return replay.peak(file, batch), replay.peak(file, batch, True), units

    def test_resnet50(self):
        """Sums apart and in place; and with the blocks under checkpoints."""
        make = models.torchvision_net("resnet50")
        self.assertEqual(self.peaks(make, 8, "layer?.*"), (942395088, 940297936, 561295056))

    def test_resnet50_autocast(self):
        """620,277,456 where autocast does not see that parameters are on the GPU."""
        make = models.torchvision_net("resnet50", autocast=torch.bfloat16)
        self.assertEqual(self.peaks(make, 8), (637950032, 637950032, None))

    def test_vit(self):
        """PyTorch's figures of docs/pytorch.md: attention within nn.MultiheadAttention is the efficient kernel's as well."""
        file = self.recorded(models.torchvision_net("vit_b_16"))
        self.assertEqual([replay.peak(file, batch, True) for batch in (16, 64)], [2741102632, 8849218984])

    @unittest.skipUnless(ALL, "SNSIM_PY_ALL=1")
    def test_swin(self):
        self.assertEqual(self.peaks(models.torchvision_net("swin_t", adamw), 4, "features.*.*"), (816218384, 816218384, 577663840))

    @unittest.skipUnless(ALL, "SNSIM_PY_ALL=1")
    def test_densenet(self):
        make = models.torchvision_net("densenet121")
        self.assertEqual(self.peaks(make, 8, "features.denseblock?.*"), (1114670320, 1114670320, 320094960))

    @unittest.skipUnless(ALL, "SNSIM_PY_ALL=1")
    @needs("transformers")
    def test_gpt2(self):
        """8,499,723,464 where transformers sees that tensors are fakes."""
        self.assertEqual(self.peaks(models.gpt2(), 4, "transformer.h.*"), (8298396872, 8298396872, 4142889992))


@needs("torchvision")
@unittest.skipUnless(dialect.is_there(), "the program is not built")
class Dialect(Case):
    """Live bytes at the peak, sums in place, are those of `snsim --net tv_...`."""

    def check(self, network, batch, autocast=None):
        options = ["--optimizer", "momentum"] + (["--precision", "amp-bf16"] if autocast else [])
        file = self.recorded(models.torchvision_net(network, autocast=autocast), batch=batch)
        name = network if network in ("mobilenet_v3_small", "efficientnet_b0", "convnext_tiny") else f"tv_{network}"
        self.assertEqual(replay.peak(file, batch, True), dialect.live_peak(name, batch, *options), network)

    def test_networks(self):
        for network in ("resnet18", "squeezenet1_1", "mobilenet_v2", "alexnet"):
            self.check(network, 4)
            self.check(network, 4, torch.bfloat16)

    def test_fused(self):
        fused = models.torchvision_net("resnet18", lambda model: torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, fused=True))
        self.assertEqual(replay.peak(self.recorded(fused, batch=4), 4, True), dialect.live_peak("tv_resnet18", 4, "--optimizer", "momentum:impl=fused"))

    def test_view_changed_in_place(self):
        """EfficientNet's dropout changes a view."""
        self.check("efficientnet_b0", 4)

    @unittest.skipUnless(ALL, "SNSIM_PY_ALL=1")
    def test_more_networks(self):
        for network in ("resnet50", "resnet101", "densenet121", "vgg16", "mobilenet_v3_small", "convnext_tiny"):
            self.check(network, 4)
            self.check(network, 8, torch.bfloat16)


class Tracked(Case):
    """PyTorch's MemTracker over the same step."""

    def test_loops(self):
        for make in (models.small_cnn, models.transformer, models.gan, models.lstm, models.accumulated):
            file = self.recorded(make, batch=4)
            self.assertEqual(replay.peak(file, 4), oracle.memtracker(make, 4), make.__name__)


if __name__ == "__main__":
    unittest.main()
