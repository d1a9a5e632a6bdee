"""What a recording of fakes can get wrong, one by one: each against a figure or a fact that does not come from the recorder."""
import copy
import unittest
from unittest import mock

from support import Case, needs, since_2_5

import torch
from torch import nn
from torch._subclasses.fake_impls import stride_incorrect_op
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import models
import replay
from snsim import _kernels


def linear(width=16):
    return nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))


def loop(build, shape=(16,), optimizer=models.momentum, dtype=torch.float32):
    """make(batch) of a model under the mean of its output."""
    def make(batch):
        model = build()
        return models.trained(model, optimizer(model), lambda: model(torch.zeros(batch, *shape, dtype=dtype, device="cuda")).mean())
    return make


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.first, self.second, self.reentrant = linear(), linear(), reentrant

    def forward(self, x):
        return checkpoint(self.second, self.first(x), use_reentrant=self.reentrant)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.linear = nn.Parameter(torch.ones(16)), linear()

    def forward(self, x):
        return models.Scale.apply(self.linear(x), self.weight)


class Views(nn.Module):
    """Changes views in place, of what has a history."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 1)

    def forward(self, x):
        y = self.conv(x).mean((2, 3), keepdim=True).flatten(1)
        y[:, 0] = 0
        y.mul_(2)
        part = y[:, 1:3]
        part += 1
        return y


class Conjugate(nn.Module):
    """A conjugate's copy is made within the function that reads it."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(9, dtype=torch.cfloat))

    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(x) * self.weight.conj())


class Autograd(Case):
    def test_custom_function(self):
        self.assert_tracked(loop(Scaled))

    def test_views_changed_in_place(self):
        self.assert_tracked(loop(Views, (3, 8, 8)))

    def test_a_view_that_is_a_leaf(self):
        """Speech models ask for gradients of their input, a view."""
        class Asking(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv1d(1, 4, 3)

            def forward(self, x):
                x = x[:, None]
                x.requires_grad = True
                return self.conv(x)
        self.assert_tracked(loop(Asking))

    @unittest.skipIf(stride_incorrect_op(torch.ops.aten._fft_c2r.default), "this PyTorch runs transforms to know in what order they lie")
    def test_conjugate(self):
        self.assert_tracked(loop(Conjugate))

    def test_checkpoint_in_the_model(self):
        for reentrant in (False, True):
            self.assert_tracked(loop(lambda reentrant=reentrant: Checkpointed(reentrant)))

    def test_checkpoint_is_what_the_file_says(self):
        """A recording under checkpoints, and the replay of one without."""
        def checkpointed(batch):
            made = models.transformer(batch)
            for block in made[0][0].blocks:
                block.forward = lambda x, forward=block.forward: checkpoint(forward, x, use_reentrant=False)
            return made
        plain = self.recorded(models.transformer, batch=16)
        expected, _ = replay.checkpointed_peak(plain, 16, "blocks.*")
        self.assertEqual(replay.peak(self.recorded(checkpointed, batch=16), 16), expected)

    def test_gradient_of_gradient(self):
        def make(batch):
            critic = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.LeakyReLU(0.2), nn.Conv2d(8, 1, 3))
            optimizer = torch.optim.Adam(critic.parameters())

            def step():
                optimizer.zero_grad()
                x = torch.empty(batch, 3, 16, 16, device="cuda", requires_grad=True)
                score = critic(x).mean()
                gradient, = torch.autograd.grad(score, x, create_graph=True)
                ((gradient.flatten(1).norm(2, 1) - 1).pow(2).mean() + score).backward()
                optimizer.step()
            return [critic], [optimizer], step
        self.assert_tracked(make)

    def test_graph_kept(self):
        def make(batch):
            model = linear()
            optimizer = models.momentum(model)

            def step():
                optimizer.zero_grad()
                y = model(torch.empty(batch, 16, device="cuda"))
                y.mean().backward(retain_graph=True)
                y.sum().backward()
                optimizer.step()
            return [model], [optimizer], step
        file = self.assert_tracked(make)
        taken = [event[1] for event in file.events if event[0] == "k"]
        self.assertGreater(len(taken), len(set(taken)))  # some handle was taken out twice

    def test_update_within_backward(self):
        def make(batch):
            model = linear()
            optimizers = {parameter: torch.optim.AdamW([parameter]) for parameter in model.parameters()}

            def update(parameter):
                optimizers[parameter].step()
                optimizers[parameter].zero_grad()
            for parameter in model.parameters():
                parameter.register_post_accumulate_grad_hook(update)
            return [model], list(optimizers.values()), lambda: model(torch.empty(batch, 16, device="cuda")).mean().backward()
        self.assert_tracked(make)

    def test_sums_in_place(self):
        file = self.recorded(models.residual_cnn, batch=4)
        sums = [op.sum for op in file.operations if op.sum]
        self.assertEqual(sums, [2, 2, 2, 2])  # a block an iteration: its input's two gradients
        for op in file.operations:
            if op.sum:
                self.assertIn(op.summand, op.reads)

    def test_nodes(self):
        """A forward operation and those of its backward have one number."""
        file = self.recorded(loop(linear), batch=4)
        of = {phase: {op.node for op in file.operations if op.phase == phase and file.kernels[op.kernel][1] & 16} for phase in (0, 1)}
        self.assertEqual(len(of[0]), 4)  # two products in two iterations
        self.assertEqual(of[0], of[1])
        self.assertIn(min(of[0]), (0, 1))


class Autocast(Case):
    def test_a_weight_is_cast_once(self):
        """Its cache: two uses of a module, one copy of its weight and one of its bias."""
        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(16, 16)

            def forward(self, x):
                with torch.autocast("cuda", torch.bfloat16):
                    return self.linear(self.linear(x)).float()
        file = self.assert_tracked(loop(Twice))
        copies = [op for op in file.operations if file.kernels[op.kernel][0] == "aten._to_copy.default" and op.phase == 0
                  and any(file.storages[storage][4] == "parameter" for storage in op.reads)]
        self.assertEqual(len(copies), 4)  # of two iterations

    def test_detached_is_cast(self):
        seen = []

        class Detached(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)

            def forward(self, x):
                y = self.first(x)
                with torch.autocast("cuda", torch.bfloat16):
                    for cut in (y.detach(), (y > 0).float()):
                        seen.append(F.linear(cut, self.second.weight).dtype)
                return y
        self.recorded(loop(Detached), batch=2)
        self.assertEqual(set(seen), {torch.bfloat16})


class Kernels(Case):
    def attention(self, heads, width, dtype, mask=False, sm=80, keys=None, queries=8, dropout=0.0):
        grouped = {"enable_gqa": True} if keys else {}

        def make(batch):
            sizes = (heads, queries), (keys or heads, 8), (keys or heads, 8)
            q, k, v = (nn.Parameter(torch.empty(1, count, length, width, dtype=dtype)) for count, length in sizes)
            holder = nn.ParameterList([q, k, v])
            bias = torch.zeros(8, 8, dtype=dtype, device="cuda")

            def step():
                rows = [x.expand(batch, -1, -1, -1) for x in holder]
                F.scaled_dot_product_attention(*rows, attn_mask=bias if mask else None, dropout_p=dropout, is_causal=not mask, **grouped).sum().backward()
            return [holder], [], step
        return " ".join(self.kernels(self.recorded(make, batch=2, sm=sm)))

    def test_attention_by_rule(self):
        half = torch.bfloat16
        for expected, arguments in (("flash", (4, 16, half)), ("flash", (4, 20, half)), ("efficient", (4, 16, half, True)),
                                    ("efficient", (4, 16, torch.float16, False, 75)), ("bmm", (4, 20, torch.float16, False, 75)),
                                    ("bmm", (4, 16, half, False, 75)), ("efficient", (4, 16, torch.float16, True)),
                                    ("efficient", (4, 16, torch.float32)), ("bmm", (4, 15, torch.float32))):
            called = self.attention(*arguments)
            self.assertIn(expected, called, arguments)
            for other in {"flash", "efficient"} - {expected}:
                self.assertNotIn(f"_{other}_attention", called, arguments)

    def test_what_flash_refuses(self):
        """A causal mask that is not square, and the backward of large heads on processors with little shared memory."""
        half = torch.bfloat16
        for expected, arguments in (("efficient", dict(width=16, queries=4)), ("flash", dict(width=16, queries=8)), ("flash", dict(width=200)),
                                    ("efficient", dict(width=200, sm=86)), ("efficient", dict(width=200, sm=120)), ("flash", dict(width=200, sm=90)),
                                    ("flash", dict(width=256, sm=89)), ("efficient", dict(width=256, sm=89, dropout=0.1)),
                                    ("flash", dict(width=192, sm=89, dropout=0.1))):
            self.assertIn(f"_{expected}_attention", self.attention(2, dtype=half, **arguments), arguments)

    @since_2_5
    def test_grouped_attention_by_rule(self):
        """The efficient kernel reads fewer heads of keys where this version says so; elsewhere all scores are made."""
        self.assertIn("_flash_attention", self.attention(4, 16, torch.bfloat16, keys=2))
        for reads, expected in ((True, "_efficient_attention"), (False, "bmm")):
            if reads and not _kernels._GROUPED:
                continue  # an older version has no gradient of it
            with mock.patch.object(_kernels, "_GROUPED", reads):
                called = self.attention(4, 16, torch.float32, keys=2)
            self.assertIn(expected, called)
            self.assertEqual("_efficient_attention" in called, reads)

    def test_order_of_convolutions(self):
        """cuDNN's result lies as its input does, in whatever numbers and groups; PyTorch would ask the driver for some."""
        class Orders(nn.Module):
            def __init__(self):
                super().__init__()
                self.whole, self.each, self.back = nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3, groups=8), nn.ConvTranspose2d(8, 8, 2, groups=4)

            def forward(self, x):
                x = x.contiguous(memory_format=torch.channels_last)
                self.seen = [layer(x).is_contiguous(memory_format=torch.channels_last) for layer in (self.whole, self.each, self.back)]
                return self.each(x.contiguous()).mean() + self.whole(x).mean() + self.back(x).mean()
        for dtype in (None, torch.float16, torch.bfloat16):
            model = Orders()
            self.recorded(model, ((2, 8, 16, 16),), autocast=dtype)
            self.assertEqual(model.seen, [True] * 3, dtype)

    def test_layout_of_convolutions(self):
        """Each is marked whose operands lie channels last, as are batch norms."""
        for format, flags in ((torch.contiguous_format, {8}), (torch.channels_last, {8 | 32})):
            model = nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3)).to(memory_format=format)
            file = self.recorded(model, (torch.zeros(2, 4, 16, 16).to(memory_format=format),), autocast=torch.bfloat16)
            self.assertEqual({flag for name, flag in file.kernels if "convolution" in name}, flags)
            self.assertEqual({flag & 32 for name, flag in file.kernels if "batch_norm" in name}, {flag & 32 for flag in flags})

    def test_recurrent(self):
        """The weights are one storage, as on a GPU, and the output of rows ahead of steps is a view."""
        file = self.recorded(models.lstm, batch=2)
        kernels = self.kernels(file)
        self.assertEqual(kernels.count("aten._cudnn_rnn.default"), 2)
        self.assertEqual(len({row[1] for row in file.parameters if row[0].startswith("memory")}), 1)
        self.assertTrue(all(op.flops for op in file.operations if file.kernels[op.kernel][0] == "aten._cudnn_rnn.default"))

    def test_recurrent_output_lies_as_on_a_cpu(self):
        """With steps ahead of rows whichever of them the user has first, which the kernel's fake does not know."""
        for first in (False, True):
            strides = []

            class Memory(nn.LSTM):
                def forward(self, x):
                    output = super().forward(x)[0]
                    strides.append(output.stride())
                    return output
            model = Memory(16, 8, 2, batch_first=first)
            model(torch.zeros(2, 5, 16))
            self.recorded(model, (torch.zeros(2, 5, 16),), batch=2)
            self.assertEqual(len(set(strides)), 1, strides)
            self.assertGreater(len(strides), 2)

    def test_packed_sequences(self):
        """Of known lengths: as many steps as there are."""
        class Packed(nn.Module):
            def __init__(self):
                super().__init__()
                self.memory = nn.LSTM(16, 8, batch_first=True)

            def forward(self, x, lengths):
                packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
                return nn.utils.rnn.pad_packed_sequence(self.memory(packed)[0], batch_first=True)[0]
        file = self.recorded(Packed(), ((3, 5, 16), torch.tensor([2, 5, 4])), batch=3)
        self.assertEqual(file.header["assumed"], [])
        made = [op for op in file.operations if file.kernels[op.kernel][0] == "aten._cudnn_rnn.default"]
        self.assertEqual(file.sizes(3)[made[0].makes[0]], 11 * 8 * 4)

    def test_loss_of_sequences(self):
        def make(batch):
            model = nn.Linear(8, 20)

            def step():
                scores = model(torch.empty(30, batch, 8, device="cuda")).log_softmax(-1)
                lengths = [torch.full((batch,), length, dtype=torch.long, device="cuda") for length in (30, 5)]
                F.ctc_loss(scores, torch.ones(batch, 5, dtype=torch.long, device="cuda"), *lengths).backward()
            return [model], [], step
        file = self.assert_tracked(make)
        made = next(op for op in file.operations if file.kernels[op.kernel][0] == "aten._ctc_loss.default")
        self.assertEqual([file.sizes(4)[storage] for storage in made.makes], [4 * 4, 4 * 30 * 11 * 4])

    def of_rows(self, call, optimizer=torch.optim.SGD, **options):
        """A step of call(rows, batch), of 64 numbers a row."""
        def make(batch):
            model = nn.Linear(64, 64)
            update = optimizer(model.parameters(), lr=0.1, **options)

            def step():
                update.zero_grad()
                call(model(torch.empty(batch, 64, device="cuda")), batch).mean().backward()
                update.step()
            return [model], [update], step
        return make

    def test_kernels_of_the_gpu_alone(self):
        """PyTorch has no fakes of these and would run them on zeros."""
        def place(x, batch):
            return F.grid_sample(x.view(batch, 1, 8, 8), x[:, :50].reshape(batch, 5, 5, 2), align_corners=True)
        for make in (self.of_rows(place),
                     self.of_rows(lambda x, batch: torch.distributions.Beta(x[:, :4].exp(), x[:, 4:8].exp()).rsample()),
                     self.of_rows(lambda x, batch: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 255)),
                     self.of_rows(lambda x, batch: F.multi_margin_loss(x, torch.zeros(batch, dtype=torch.long, device="cuda")))):
            self.assert_tracked(make)
        file = self.recorded(self.of_rows(place), batch=4)
        made = next(op for op in file.operations if file.kernels[op.kernel][0] == "aten.cudnn_grid_sampler.default")
        self.assertEqual([file.sizes(4)[storage] for storage in made.makes], [4 * 5 * 5 * 4])

    def test_fused_updates(self):
        """One kernel, which makes nothing."""
        for optimizer, options in ((torch.optim.SGD, {"momentum": 0.9}), (torch.optim.AdamW, {})):
            file = self.assert_tracked(self.of_rows(lambda x, batch: x, optimizer, fused=True, **options))
            fused = [op for op in file.operations if file.kernels[op.kernel][0].startswith("aten._fused_")]
            self.assertEqual([(len(op.makes), op.phase) for op in fused], [(0, 2)] * 2, optimizer.__name__)

    def test_an_operator_without_a_fake_is_named(self):
        def soft(x, batch):
            return torch.ops.aten._masked_softmax(x, torch.zeros(batch, 64, dtype=torch.bool, device="cuda"), 1, 0)
        self.fails("aten._masked_softmax.default has no fake kernel", self.of_rows(soft), batch=2)

    def test_legacy_constructors(self):
        """torch.FloatTensor looks at no default device."""
        def build():
            model = nn.Linear(16, 16)
            model.weight = nn.Parameter(torch.FloatTensor(16, 16))
            return model
        self.assertEqual({row[3] for row in self.recorded(build, ((4, 16),)).storages}, {"cuda"})

    def test_optimizers_work_on_lists(self):
        """As they do on a GPU: their forms for many tensors at once, and clipping's."""
        called = self.kernels(self.recorded(models.lstm, batch=2))
        self.assertTrue(any(name.startswith("aten._foreach_addcdiv_") for name in called))
        self.assertTrue(any(name.startswith("aten._foreach_norm") for name in called))

    @needs("transformers")
    def test_transformers_take_the_path_of_a_gpu(self):
        """Not the one for fakes, which makes masks."""
        file = self.recorded(models.gpt2(32, n_layer=2, n_embd=64, n_head=4, vocab_size=100), batch=2)
        attention = [op for op in file.operations if file.kernels[op.kernel][1] & 4 and op.phase == 0]
        self.assertEqual(len(attention), 4)
        self.assertEqual({len(op.shapes[0]) for op in attention}, {3})  # queries, keys and values: no mask


class Compiler(Case):
    def test_rules_are_read_while_recording(self):
        """torch.export and others have them read again; what the recorder puts in their place is not kept after it."""
        from torch._dynamo import trace_rules

        def make(batch):
            model = linear()

            def loss():
                read.append(trace_rules.get_torch_obj_rule_map())
                return model(torch.zeros(batch, 16, device="cuda")).mean()
            return models.trained(model, models.momentum(model), loss)
        read = []
        trace_rules.clear_lru_cache()
        self.recorded(make)
        self.assertNotIn(torch.cuda.current_device, read[0])
        self.assertIn(torch.cuda.current_device, trace_rules.get_torch_obj_rule_map())


class Copies(Case):
    def test_data_is_replaced(self):
        """As in a loop that clips weights: `p.data = ..`, by which PyTorch drops the node that accumulates the gradient."""
        def make(batch):
            model = linear()
            optimizer = torch.optim.SGD(model.parameters(), 0.1)

            def step():
                optimizer.zero_grad()
                model(torch.ones(batch, 16, device="cuda")).mean().backward()
                optimizer.step()
                for parameter in model.parameters():
                    parameter.data = parameter.data.clamp(-0.01, 0.01)
            return [model], [optimizer], step
        self.assertEqual(self.kernels(self.assert_tracked(make)).count("aten.clamp.default"), 8)

    def test_a_model_is_copied(self):
        """copy.deepcopy makes tensors of the same fake GPU, buffers too, and tied ones stay tied."""
        def make(batch):
            model = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.Linear(16, 16))
            model[2].weight = model[0].weight
            model.register_buffer("scale", torch.ones(4, 16))
            model.register_buffer("row", model.scale[1])
            twin = copy.deepcopy(model)
            self.assertIs(twin[0].weight.fake_mode, model[0].weight.fake_mode)
            self.assertIs(twin[0].weight, twin[2].weight)
            self.assertIsNot(twin[0].weight, model[0].weight)
            self.assertEqual(twin.row.untyped_storage()._cdata, twin.scale.untyped_storage()._cdata)
            self.assertEqual((twin.row.storage_offset(), twin.row.device), (16, model.row.device))
            self.assertEqual(twin[1].num_batches_tracked.item(), 0)
            optimizer = torch.optim.Adam(model.parameters())

            def step():
                with torch.no_grad():
                    aim = twin(torch.ones(batch, 16, device="cuda"))
                optimizer.zero_grad()
                (model(torch.ones(batch, 16, device="cuda")) * model.row - aim).pow(2).mean().backward()
                optimizer.step()
                for one, other in zip(twin.parameters(), model.parameters()):
                    one.data.lerp_(other.data, 0.1)
            return [model, twin], [optimizer], step
        file = self.assert_tracked(make)
        self.assertEqual(len(file.parameters), 10)

    def test_parameters_of_a_class_of_their_own(self):
        """As bitsandbytes' Params4bit: numbers packed into bytes when they come to the GPU, and what unpacks them."""
        class Packed(nn.Parameter):
            def __new__(cls, data, scale=None):
                self = torch.Tensor._make_subclass(cls, data, False)
                self.scale = scale
                return self

            def to(self, *arguments, **named):
                if self.scale is None:
                    self.scale, self.data = self.data.abs().amax(1, keepdim=True), (self.data * 16).to(torch.uint8)
                return super().to(*arguments, **named)

        class Quantized(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight, self.bias = Packed(torch.ones(64, 16)), nn.Parameter(torch.zeros(64))

            def forward(self, x):
                return F.linear(x, self.weight.float() * self.weight.scale, self.bias)
        before = vars(torch.Tensor).get("_make_subclass")
        built = []

        def make(batch):
            model = Quantized().to("cuda")
            built.append(model)
            return models.trained(model, models.momentum(model), lambda: model(torch.ones(batch, 16, device="cuda")).mean())
        file = self.recorded(make, batch=2)
        self.assertIsInstance(built[0].weight, Packed)
        self.assertEqual([(name, file.sizes(2)[storage], trained) for name, storage, _, _, trained, *_ in file.parameters],
                         [("weight", 64 * 16, 0), ("bias", 64 * 4, 1)])
        self.assertIs(vars(torch.Tensor).get("_make_subclass"), before)

    def test_averages(self):
        """torch.optim.swa_utils makes its model by deepcopy."""
        def make(batch):
            (model,), _, _ = models.small_cnn(2)
            average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
            optimizer = torch.optim.SGD(model.parameters(), 0.1)

            def step():
                optimizer.zero_grad()
                model(torch.ones(batch, 3, 32, 32, device="cuda")).mean().backward()
                optimizer.step()
                average.update_parameters(model)
            return [model, average], [optimizer], step
        self.assert_tracked(make)


class Values(Case):
    def test_counters_of_batch_norm(self):
        """With momentum=None the mean's weight is 1 / the counter."""
        def build():
            return nn.Sequential(nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8, momentum=None))
        self.assertEqual(self.assert_tracked(loop(build, (3, 8, 8))).header["assumed"], [])

    def test_steps_of_optimizers(self):
        """Their counters are on the CPU, where bias corrections read them."""
        for kind in (torch.optim.Adam, torch.optim.NAdam, torch.optim.RAdam, torch.optim.Adamax):
            file = self.assert_tracked(loop(linear, optimizer=lambda model, kind=kind: kind(model.parameters())))
            self.assertEqual(file.header["assumed"], [])
            self.assertIn("cpu", {row[3] for row in file.storages if row[4] == "state"})

    def test_a_mask_decides(self):
        class Masked(nn.Module):
            def __init__(self):
                super().__init__()
                self.full, self.cut = nn.Linear(16, 16), nn.Linear(16, 16)

            def forward(self, x, mask):
                return (self.full if mask.all() else self.cut)(x)

        def called(mask):
            file = self.recorded(Masked(), ((2, 16), mask))
            self.assertEqual(file.header["assumed"], [])
            return {file.modules[module][0] for _, module in file.calls}
        whole = torch.ones(2, 16, dtype=torch.bool)
        part = whole.clone()
        part[0, 3] = False
        self.assertIn("full", called(whole))
        self.assertIn("cut", called(part))

    def test_assertions_hold(self):
        """What is asked of all elements: distributions ask so of their parameters, and the user's own checks."""
        class Checked(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(16, 16)

            def forward(self, x):
                y = self.linear(x)
                assert torch.isfinite(y).all()
                policy = torch.distributions.Categorical(logits=y)
                return policy.log_prob(policy.sample()) + torch.distributions.Normal(y, 1.0).entropy().sum(1)
        file = self.assert_tracked(loop(Checked, (16,)))
        self.assertIn("a number read from the GPU is True", {what for what, _ in file.header["assumed"]})

    def test_sizes_by_values(self):
        """Of whole numbers that are known they are exact."""
        class Chosen(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(16, 16)

            def forward(self, x, mask):
                return self.linear(x[mask])
        mask = torch.tensor([True, False, True, True])
        file = self.recorded(Chosen(), ((4, 16), mask), batch=4)
        self.assertEqual(file.header["assumed"], [])
        self.assertEqual([op.shapes[0][1][0] for op in file.operations if "addmm" in file.kernels[op.kernel][0]], [3, 3])

    def test_a_mask_made_smaller_decides(self):
        """As numbers of four bytes, of which there are more than others are computed of: ViLT's patches."""
        class Patches(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(16, 16)

            def forward(self, x, mask):
                small = F.interpolate(mask[:, None].float(), size=(2, 2)).long()
                return self.linear(x[:, :int(small[0].sum())].flatten(0, 1))
        mask = torch.ones(2, 128, 128, dtype=torch.long)
        mask[:, :64, 64:] = 0
        file = self.recorded(Patches(), ((2, 4, 16), mask), batch=2)
        self.assertEqual(file.header["assumed"], [])
        self.assertEqual([op.shapes[0][1][0] for op in file.operations if "addmm" in file.kernels[op.kernel][0]], [6, 6])

    def test_assumed_with_the_line(self):
        class Guessing(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(16, 16)

            def forward(self, x):
                y = self.linear(x)
                if y.sum() > 0:
                    return y
                return y[y > 0]
        file = self.recorded(Guessing(), ((4, 16),), batch=4, assume=0.25)
        lines = {line.split(":")[0] for _, line in file.header["assumed"]}
        self.assertEqual(lines, {"test_traps.py"})
        self.assertEqual(len(file.header["assumed"]), 2)
        self.assertIn("0.25 of the elements", file.header["assumed"][1][0])
        index = [op for op in file.operations if file.kernels[op.kernel][0] == "aten.index.Tensor"]
        self.assertEqual(file.sizes(4)[index[0].makes[0]], 4 * 16)  # a quarter of 4 x 16 floats


if __name__ == "__main__":
    unittest.main()
