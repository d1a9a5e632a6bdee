"""Small models and loops that tests record: make(batch) returns models, optimizers and a step."""
import torch
from torch import nn
from torch.nn import functional as F


def classes(batch, count=10):
    return torch.zeros(batch, dtype=torch.long, device="cuda") % count


def trained(model, optimizer, loss):
    """A loop of zero_grad, loss, backward and step."""
    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    return [model], [optimizer], step


def momentum(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def small_cnn(batch):
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                          nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(32, 10))

    def loss():
        return F.cross_entropy(model(torch.empty(batch, 3, 32, 32, device="cuda")), classes(batch))
    return trained(model, momentum(model), loss)


class Residual(nn.Module):
    """Two branches meet: the engine adds their gradients."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return F.relu(x + self.second(F.relu(self.first(x))))


def residual_cnn(batch):
    model = nn.Sequential(nn.Conv2d(3, 16, 3), Residual(16), Residual(16), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))

    def loss():
        return F.cross_entropy(model(torch.empty(batch, 3, 32, 32, device="cuda")), classes(batch))
    return trained(model, momentum(model), loss)


def plain_cnn(batch):
    """Its blocks are Sequentials of layers."""
    def unit(width):
        return nn.Sequential(nn.Conv2d(width, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
    model = nn.Sequential(unit(3), nn.Sequential(*[unit(16) for _ in range(3)]), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))

    def loss():
        return F.cross_entropy(model(torch.empty(batch, 3, 32, 32, device="cuda")), classes(batch))
    return trained(model, momentum(model), loss)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True, dropout_p=0.1 if self.training else 0.0)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """A decoder whose head is its embedding."""

    def __init__(self, blocks=2, width=64, heads=4, words=500, length=32):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens):
        x = self.words(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def transformer(batch):
    model = Transformer()

    def loss():
        tokens = torch.zeros(batch, 32, dtype=torch.long, device="cuda")
        return F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    return trained(model, torch.optim.AdamW(model.parameters()), loss)


class Gated(nn.Module):
    """A block as Llama's, without biases: products of matrices alone (aten.mm)."""

    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.RMSNorm(width), nn.RMSNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up, self.down = (nn.Linear(*sizes, bias=False) for sizes in ((width, inner), (width, inner), (inner, width)))

    def forward(self, x):
        y = self.norm1(x)
        qkv = (each(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in (self.query, self.key, self.value))
        x = x + self.out(F.scaled_dot_product_attention(*qkv, is_causal=True).transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    def __init__(self, blocks=3, width=64, heads=4, words=200):
        super().__init__()
        self.words, self.blocks = nn.Embedding(words, width), nn.Sequential(*(Gated(width, heads, 3 * width) for _ in range(blocks)))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        return self.head(self.blocks(self.words(tokens)))


def decoder(batch):
    model = Decoder()

    def loss():
        tokens = torch.zeros(batch, 32, dtype=torch.long, device="cuda")
        return F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    return trained(model, torch.optim.AdamW(model.parameters()), loss)


class Grow(nn.Module):
    """Reads all values before it and adds one. Nobody reads `places`."""

    def __init__(self, width, grow):
        super().__init__()
        self.norm, self.first, self.second = nn.LayerNorm(width), nn.Linear(width, 4 * grow), nn.Linear(4 * grow, grow)

    def forward(self, values, places):
        return self.second(F.relu(self.first(self.norm(torch.cat(values, -1)))))


class Dense(nn.Module):
    def __init__(self, out, blocks=3, width=32, grow=16):
        super().__init__()
        self.start, self.head = nn.Linear(8, width), nn.Linear(width + blocks * grow, out)
        self.blocks = nn.ModuleList(Grow(width + i * grow, grow) for i in range(blocks))

    def forward(self, x):
        places = torch.zeros(x.shape[:2], dtype=torch.long, device=x.device)
        values = (self.start(x),)
        for block in self.blocks:
            values += (block(values, places),)
        return self.head(torch.cat(values, -1))


def dense(batch, out=10):
    model = Dense(out)
    return trained(model, momentum(model), lambda: model(torch.empty(batch, 64, 8, device="cuda")).pow(2).mean())


def dense_wide(batch):
    """Its fullest moment is in the loss, when the blocks' arguments are all that is left of them."""
    return dense(batch, 500)


class Scaled(nn.Module):
    """ConvNeXt's block."""

    def __init__(self, width):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width)
        self.first, self.second = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = self.norm(self.conv(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.second(F.gelu(self.first(y)))).permute(0, 3, 1, 2)


def scaled_cnn(batch):
    model = nn.Sequential(nn.Conv2d(3, 16, 4, 4), Scaled(16), Scaled(16), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))

    def loss():
        return F.cross_entropy(model(torch.empty(batch, 3, 64, 64, device="cuda")), classes(batch))
    return trained(model, momentum(model), loss)


def gan(batch):
    generator = nn.Sequential(nn.ConvTranspose2d(16, 32, 4, 1, 0, bias=False), nn.BatchNorm2d(32), nn.ReLU(True),
                              nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
                              nn.ConvTranspose2d(16, 3, 4, 2, 1, bias=False), nn.Tanh())
    critic = nn.Sequential(nn.Conv2d(3, 16, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(16, 32, 4, 2, 1), nn.BatchNorm2d(32),
                           nn.LeakyReLU(0.2, True), nn.Conv2d(32, 1, 4), nn.Flatten())
    generates, judges = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
    entropy = nn.BCEWithLogitsLoss()

    def step():
        real = torch.empty(batch, 3, 16, 16, device="cuda")
        made = generator(torch.randn(batch, 16, 1, 1, device="cuda"))
        ones, zeros = torch.ones(batch, 1, device="cuda"), torch.zeros(batch, 1, device="cuda")
        judges.zero_grad()
        (entropy(critic(real), ones) + entropy(critic(made.detach()), zeros)).backward()
        judges.step()
        generates.zero_grad()
        entropy(critic(made), ones).backward()
        generates.step()
    return [generator, critic], [generates, judges], step


class Reader(nn.Module):
    def __init__(self, words=200, width=32):
        super().__init__()
        self.words, self.memory = nn.Embedding(words, width), nn.LSTM(width, width, 2, dropout=0.5, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, tokens):
        return self.out(self.memory(self.words(tokens))[0])


def lstm(batch):
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        optimizer.zero_grad()
        tokens = torch.zeros(batch, 16, dtype=torch.long, device="cuda")
        F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return [model], [optimizer], step


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        ctx.extra = x.exp()
        return x * weight

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient * weight + ctx.extra.mean(), (gradient * x).sum(0)


def accumulated(batch):
    """Three passes an update, float16 under autocast, a scaler."""
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer, scaler = momentum(model), torch.amp.GradScaler("cuda")

    def step():
        optimizer.zero_grad()
        for _ in range(3):
            with torch.autocast("cuda", torch.float16):
                loss = F.cross_entropy(model(torch.empty(batch, 64, device="cuda")), classes(batch)) / 3
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    return [model], [optimizer], step


def torchvision_net(name, optimizer=momentum, autocast=None, image=224):
    """A network of torchvision, trained on images."""
    def make(batch):
        import torchvision
        model = getattr(torchvision.models, name)()
        model.train()
        update = optimizer(model)

        def step():
            update.zero_grad()
            images, labels = torch.empty(batch, 3, image, image, device="cuda"), classes(batch)
            with torch.autocast("cuda", autocast or torch.bfloat16, enabled=autocast is not None):
                loss = F.cross_entropy(model(images), labels)
            loss.backward()
            update.step()
        return [model], [update], step
    return make


def gpt2(length=1024, **options):
    """GPT-2 of transformers, with the loss that it makes of labels."""
    def make(batch):
        import transformers
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False, **options))
        model.train()
        optimizer = torch.optim.AdamW(model.parameters())

        def step():
            optimizer.zero_grad()
            tokens = torch.zeros(batch, length, dtype=torch.long, device="cuda")
            loss = model(input_ids=tokens, labels=tokens).loss
            loss.backward()
            optimizer.step()
        return [model], [optimizer], step
    return make
