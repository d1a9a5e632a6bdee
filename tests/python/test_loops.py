"""Loops as users write them, in which something once failed: each against MemTracker or a fact, or refused with a way out."""
import contextlib
import functools
import unittest

from support import Case, VERSION, since_2_5

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import models


def linear(width=16):
    return nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))


def looped(build, loss):
    """make(batch) of build() under loss(model, batch)."""
    def make(batch):
        model = build()
        return models.trained(model, models.momentum(model), lambda: loss(model, batch))
    return make


def rows(batch, width=16):
    return torch.zeros(batch, width, device="cuda")


class Loops(Case):
    @since_2_5
    def test_selective_checkpoints(self):
        """What the policy keeps is not made again; nor is the device asked of the driver for what is handed out without an operation."""
        from torch.utils.checkpoint import create_selective_checkpoint_contexts
        keeps = functools.partial(create_selective_checkpoint_contexts, [torch.ops.aten.addmm.default])

        def make(context):
            return looped(linear, lambda model, batch: checkpoint(model, rows(batch), use_reentrant=False, **context).mean())
        kept = self.kernels(self.assert_tracked(make({"context_fn": keeps})))
        again = self.kernels(self.assert_tracked(make({})))
        self.assertEqual([called.count("aten.addmm.default") for called in (kept, again)], [4, 6])
        self.assertEqual([called.count("aten.gelu.default") for called in (kept, again)], [4, 4])

    @since_2_5
    def test_an_ensemble_by_vmap(self):
        """The module that gives its form lies on the device meta, to which PyTorch moves parameters by making others."""
        def make(batch):
            members = [linear() for _ in range(3)]
            weights, _ = torch.func.stack_module_state(members)
            form = members[0].to("meta")
            assert {p.device.type for p in form.parameters()} == {"meta"}
            holder = nn.ParameterList(weights.values())

            def loss():
                called = torch.vmap(lambda of, x: torch.func.functional_call(form, of, (x,)), (0, None))
                return called(dict(zip(weights, holder)), rows(batch)).mean()
            return models.trained(holder, models.momentum(holder), loss)
        file = self.assert_tracked(make)
        self.assertEqual([row[3] for row in file.parameters], [3 * 512, 3 * 32, 3 * 512, 3 * 16])

    def test_streams(self):
        """torch.cuda.Stream needs no driver, and changes no byte."""
        def loss(model, batch, beside):
            x, stream = rows(batch), torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream) if beside else contextlib.nullcontext():
                y = x * 2
            torch.cuda.current_stream().wait_event(stream.record_event())
            y.record_stream(torch.cuda.current_stream())
            torch.cuda.synchronize()
            return model(y).mean()
        files = [self.assert_tracked(looped(linear, functools.partial(loss, beside=beside))) for beside in (False, True)]
        self.assertEqual(*(file.events for file in files))

    def test_parametrizations(self):
        """orthogonal() asks whether a weight is so: it is taken to be."""
        def build():
            norms = nn.utils.parametrizations
            return nn.Sequential(norms.orthogonal(nn.Linear(16, 16)), norms.weight_norm(nn.Linear(16, 16)), norms.spectral_norm(nn.Linear(16, 16)))
        file = self.assert_tracked(looped(build, lambda model, batch: model(rows(batch)).mean()))
        self.assertEqual(file.header["assumed"], [])

    def test_a_loop_ends(self):
        """As generate() does: at the longest, where each row may have ended before, which only values would tell."""
        def loss(model, batch):
            y, going = rows(batch), torch.ones(batch, dtype=torch.long, device="cuda")
            for length in range(100):
                y = model(y)
                longest = torch.full((batch,), length >= 2, device="cuda")
                going = going & ~(longest | (y.argmax(1) == 3))
                if going.max() == 0:
                    return y.mean()
            return y.mean()
        self.assertEqual(self.kernels(self.assert_tracked(looped(linear, loss)), 0).count("aten.gelu.default"), 2 * 3)

    def test_parts_of_any_batch(self):
        """Half of 2 rows and half of 3 are one row: that is no line, of which a larger batch may be read."""
        def make(batch):
            model = nn.Linear(16, 16)

            def loss():
                y = model(rows(batch))
                return y[y.sum(1) > 0].mean()
            return models.trained(model, models.momentum(model), loss)
        file = self.recorded(make)
        self.assertEqual(file.header["batches"], [3])
        self.assertIn("no batch but 3", file.header["assumed"][-1][0])
        self.assertEqual(self.recorded(make, batch=16).header["batches"], [16])


class Refused(Case):
    @since_2_5
    def test_with_a_way_out(self):
        def attended(model, batch):
            from torch.nn.attention.flex_attention import flex_attention
            heads = model(rows(batch)).view(batch, 1, 1, 16).expand(batch, 1, 32, 16)
            return flex_attention(heads, heads, heads).mean()

        def nested(model, batch):
            x = torch.nested.nested_tensor([rows(2), rows(3)], layout=torch.jagged)
            return model(x).values().mean()

        def of_each(model, batch):
            weights = {name: weight.detach() for name, weight in model.named_parameters()}
            one = torch.func.grad(lambda of, x: torch.func.functional_call(model, of, (x,)).mean())
            return sum(x.sum() for x in torch.vmap(one, (None, 0))(weights, rows(batch)).values()) + model(rows(batch)).mean()
        newer = VERSION > (2, 8)  # before, nested tensors have nothing to say for themselves
        for loss, text in ((attended, "take torch.nn.functional.scaled_dot_product_attention"), (nested, "pad" if newer else "test_loops.py:"),
                           (of_each, "take torch.autograd.grad")):
            self.assertIn("test_loops.py:", self.fails(text, looped(linear, loss), batch=2))

    def test_sparse_gradients(self):
        self.fails("sparse=False", looped(lambda: nn.Embedding(16, 16, sparse=True),
                                          lambda model, batch: model(torch.zeros(batch, dtype=torch.long, device="cuda")).mean()), batch=2)


if __name__ == "__main__":
    unittest.main()
