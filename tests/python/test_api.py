"""snsim.record and snsim.recording as people call them."""
import unittest

from support import Case, needs

import torch
from torch import nn
from torch.nn import functional as F

import models
import oracle
import replay
import snsim

LABELS = torch.zeros(4, dtype=torch.long)


def net():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))


def momentum(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def same_loop(batch):
    """What record(net(), images, cross entropy of labels, momentum) does, as a loop."""
    model = net()
    optimizer = momentum(model.parameters())

    def step():
        images, labels = torch.empty(batch, 3, 8, 8, device="cuda"), torch.zeros(batch, dtype=torch.long, device="cuda")
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    return [model], [optimizer], step


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, a, b):
        return (self.conv(a) + self.conv(b)).mean()


class Inputs(Case):
    def setUp(self):
        super().setUp()
        self.expected = oracle.memtracker(same_loop, 16)

    def check(self, *arguments, **options):
        options = {"optimizer": momentum, **options}
        self.assertEqual(replay.peak(self.recorded(*arguments, **options), 16), self.expected)

    def test_labels_around_the_loss(self):
        labels = LABELS.clone()
        self.check(net(), (torch.zeros(4, 3, 8, 8),), loss=lambda y, x: F.cross_entropy(y, labels))
        self.check(net(), (torch.zeros(4, 3, 8, 8),), loss=lambda y: F.cross_entropy(y, LABELS))
        self.assertEqual(type(labels), torch.Tensor)
        self.assertEqual(type(LABELS), torch.Tensor)

    def test_targets(self):
        self.check(net(), ((4, 3, 8, 8),), loss=F.cross_entropy, targets=LABELS)
        self.check(net(), ((4, 3, 8, 8),), loss=nn.CrossEntropyLoss(), targets=(LABELS,))
        self.check(net(), torch.empty(4, 3, 8, 8, device="meta"), loss=lambda y, t: F.cross_entropy(y, t), targets=LABELS)

    def test_one_tensor_twice(self):
        same = torch.zeros(4, 3, 8, 8)
        rec = snsim.record(lambda: Twice(), {"a": same, "b": same})
        self.assertIn("for any batch", rec.summary())

    def test_named(self):
        self.check(net(), {"input": torch.zeros(4, 3, 8, 8)}, loss=F.cross_entropy, targets=LABELS)

    def test_built_by_a_function(self):
        self.check(net, ((4, 3, 8, 8),), loss=F.cross_entropy, targets=LABELS)

    def test_an_optimizer_that_exists(self):
        model = net()
        optimizer = momentum(model.parameters())
        self.check(model, ((4, 3, 8, 8),), loss=F.cross_entropy, targets=LABELS, optimizer=optimizer)
        self.assertEqual(len(optimizer.state), 0)
        self.assertIs(optimizer.param_groups[0]["params"][0], model[0].weight)

    def test_state_that_exists(self):
        """Moments that are there are so in the first iteration."""
        model = net()
        optimizer = momentum(model.parameters())
        F.cross_entropy(model(torch.randn(4, 3, 8, 8)), LABELS).backward()
        optimizer.step()
        moment = optimizer.state[model[0].weight]["momentum_buffer"]
        self.check(model, ((4, 3, 8, 8),), loss=F.cross_entropy, targets=LABELS, optimizer=optimizer)
        self.assertIs(optimizer.state[model[0].weight]["momentum_buffer"], moment)

    def test_loop_of_ones_own(self):
        model = net()
        optimizer = momentum(model.parameters())

        def step():
            images, labels = torch.zeros(16, 3, 8, 8).cuda(), torch.zeros(16, dtype=torch.long).to("cuda")
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        before = {name: value.clone() for name, value in model.state_dict().items()}
        with snsim.recording(self.folder / "a.rec", models=[model], optimizers=[optimizer], batch=16) as r:
            r.step(step)
        self.assertEqual(replay.peak(self.kept(r.recording.path), 16), self.expected)
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]))

    def test_a_loop_built_within(self):
        with snsim.recording(self.folder / "a.rec", batch=16) as r:
            with torch.device("cuda"):
                made, optimizers, step = same_loop(16)
            r.watch(*made, optimizers=optimizers)
            r.step(step)
        self.assertEqual(replay.peak(self.kept(r.recording.path), 16), self.expected)


class Mistakes(Case):
    """What is of another kind, or of another model, is told with what to give instead."""

    @needs("numpy")
    def test_kinds(self):
        import numpy
        images = (torch.empty(2, 16),)
        for text, options in (
                ("loss='mse' is no function: loss=lambda", {"loss": "mse"}), ("optimizer='adamw' is no function", {"optimizer": "adamw"}),
                ("autocast='bf16' is no dtype: autocast=torch.bfloat16", {"autocast": "bf16"}), ("batch='8': a number of at least 1", {"batch": "8"}),
                ("batch=0: a number of at least 1", {"batch": 0}), ("what else it takes is targets=..", {"loss": nn.NLLLoss()}),
                ("the optimizer has no parameter of the model", {"optimizer": torch.optim.AdamW(nn.Linear(2, 2).parameters())})):
            with self.subTest(text):
                self.fails(text, nn.Linear(16, 16), images, **options)
        self.fails("inputs hold an ndarray: give tensors, torch.from_numpy(x)", nn.Linear(16, 16), (numpy.zeros((2, 16)),))
        self.fails("a ScriptModule runs where nothing is seen", torch.jit.trace(nn.Linear(16, 16), images), images)
        self.fails("in order or by name: inputs=(x, y)", nn.Linear(16, 16), {"image": images[0]})


class Options(Case):
    def test_inference(self):
        file = self.recorded(net(), ((4, 3, 8, 8),), train=False)
        self.assertEqual({op.phase for op in file.operations}, {0})
        self.assertFalse([event for event in file.events if event[0] == "s"])

    def test_modes(self):
        """A model in evaluation mode is trained, and is in its mode again; a frozen part stays so."""
        model = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.5))).eval()
        self.assertEqual(self.kernels(self.recorded(model, ((4, 16),)), 0).count("aten.native_dropout.default"), 4)
        self.assertFalse(model.training or model[1].training)
        model.train()
        model[2].eval()
        self.assertEqual(self.kernels(self.recorded(model, ((4, 16),)), 0).count("aten.native_dropout.default"), 2)
        self.assertEqual([module.training for module in model], [True, True, False])

    def test_without_an_optimizer_it_is_sgd(self):
        file = self.recorded(nn.Linear(16, 16), ((4, 16),))
        self.assertIn("aten._foreach_add_.List", self.kernels(file, 2))
        self.assertNotIn("state", {row[4] for row in file.storages})

    def test_states(self):
        file = self.recorded(nn.Linear(16, 16), ((4, 16),), optimizer=torch.optim.AdamW)
        states = [row for row in file.storages if row[4] == "state"]
        self.assertEqual(sorted(row[3] for row in states), ["cpu"] * 2 + ["cuda"] * 4)

    def test_autocast(self):
        for dtype in (torch.bfloat16, torch.float16):
            file = self.recorded(nn.Linear(16, 16), ((4, 16),), autocast=dtype)
            self.assertIn(str(dtype)[6:], {op.dtype for op in file.operations})
        self.assertIn("aten._amp_foreach_non_finite_check_and_unscale_.default", self.kernels(file))

    def test_tied(self):
        """Tied parameters are one, and storages that are shared are shared."""
        model = models.Transformer(blocks=1)
        self.assertIs(model.head.weight, model.words.weight)
        file = self.recorded(model, (torch.zeros(4, 32, dtype=torch.long),))
        self.assertEqual(len([row for row in file.parameters if row[3] == 500 * 64]), 1)
        self.assertIs(model.head.weight, model.words.weight)

    def test_parameters_know_their_gradients_and_states(self):
        file = self.recorded(nn.Linear(16, 8), ((4, 16),), optimizer=torch.optim.Adam)
        sizes = file.sizes(4)
        for name, storage, _, elements, _, rows, gradients, states in file.parameters:
            self.assertEqual((rows, elements), (8, 128 if name == "weight" else 8))
            self.assertEqual(len(gradients), file.header["iterations"])
            self.assertEqual(len(states), 2)  # the counter of steps has another shape
            self.assertEqual({sizes[each] for each in (*gradients, *states)}, {sizes[storage]})
            self.assertEqual({file.storages[each][4] for each in states}, {"state"})

    def test_shared_storage(self):
        class Parts(nn.Module):
            def __init__(self):
                super().__init__()
                whole = torch.zeros(12)
                self.first, self.second = nn.Parameter(whole[:8]), nn.Parameter(whole[8:])

            def forward(self, x):
                return x * self.first.sum() + self.second.sum()
        file = self.recorded(Parts(), ((4, 16),))
        self.assertEqual([row[1:4] for row in file.parameters], [[0, 0, 8], [0, 8, 4]])
        self.assertEqual(file.sizes(2)[0], 48)

    def test_existing_recurrent_net(self):
        """Its list of weights is swapped as well, and they are one storage, as on a GPU."""
        model = models.Reader()
        weights = list(model.memory._flat_weights)
        file = self.recorded(model, (torch.zeros(4, 16, dtype=torch.long),), optimizer=torch.optim.Adam)
        self.assertEqual(len({row[1] for row in file.parameters if row[0].startswith("memory")}), 1)
        self.assertTrue(all(x is y for x, y in zip(model.memory._flat_weights, weights)))
        model(torch.zeros(1, 16, dtype=torch.long))

    def test_converted(self):
        """A model of two bytes; what converts it keeps parameters and ties."""
        def build():
            model = models.Transformer(blocks=1)
            return model.to(torch.bfloat16)
        file = self.recorded(build, (torch.zeros(4, 32, dtype=torch.long),), optimizer=torch.optim.AdamW)
        self.assertEqual({file.storages[row[1]][2] for row in file.parameters}, {"bfloat16"})
        self.assertEqual(len([row for row in file.parameters if row[3] == 500 * 64]), 1)

    def test_compiled(self):
        file = self.recorded(torch.compile(nn.Linear(16, 16)), ((4, 16),))
        self.assertTrue(file.header["compiled"])
        model = nn.Linear(16, 16)
        model.compile()
        self.assertTrue(self.recorded(model, ((4, 16),)).header["compiled"])

    def test_large_model_without_memory(self):
        """4 G parameters: 16 GB, were they there."""
        def build():
            return nn.Sequential(*[nn.Linear(16384, 16384, bias=False) for _ in range(16)])
        file = self.recorded(build, ((4, 16384),), batch=4, train=False)
        self.assertEqual(sum(row[3] for row in file.parameters), 16 * 16384 ** 2)

    @needs("transformers")
    def test_labels_of_hugging_face(self):
        import transformers
        config = transformers.BertConfig(num_hidden_layers=1, hidden_size=32, num_attention_heads=2, intermediate_size=64, vocab_size=50)
        model = transformers.BertForMaskedLM(config)
        tokens, mask = torch.ones(4, 16, dtype=torch.long), torch.ones(4, 16, dtype=torch.long)
        mask[0, 10:] = 0
        file = self.recorded(model, {"input_ids": tokens, "labels": tokens, "attention_mask": mask}, check=True)
        self.assertEqual(file.header["assumed"], [])
        self.assertIn("aten.nll_loss_forward.default", self.kernels(file))


class Checked(Case):
    def test_the_same(self):
        for build in (net, models.Reader, models.Transformer):
            inputs = ((4, 3, 8, 8),) if build is net else (torch.zeros(4, 16, dtype=torch.long),)
            self.recorded(build(), inputs, check=True)
            self.recorded(build, inputs, check=True)

    def test_attention_within_a_module(self):
        model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)
        self.recorded(model, ((4, 5, 16),), check=True)

    def test_values_told_apart(self):
        class Asking(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(16, 16)

            def forward(self, x):
                y = self.linear(x)
                return self.linear(y) if y.abs().sum() > 0 else y
        self.fails("check: in module linear (Linear) the recording called nothing, a step on the CPU module linear", Asking(), ((4, 16),),
                   check=True)


if __name__ == "__main__":
    unittest.main()
