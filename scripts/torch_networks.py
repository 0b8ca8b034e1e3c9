"""The networks of models/ in PyTorch. Names and shapes of their state are Pleat's: scripts/torch_weights.py converts
files, tests/fixtures/torch_fixtures/models.py records what they compute, and `compare_torch.py --only step` trains those
that network_step.cpp trains."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def conv_norm(inside, out, kernel=3, stride=1, groups=1):
    return [nn.Conv2d(inside, out, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(out)]


class Residual(nn.Module):
    def __init__(self, body, shortcut=None, activation=None):
        super().__init__()
        self.body, self.shortcut, self.activation = body, shortcut or nn.Identity(), activation or nn.Identity()

    def forward(self, x):
        return self.activation(self.body(x) + self.shortcut(x))


def basic_block(inside, out, stride):
    body = nn.Sequential(*conv_norm(inside, out, 3, stride), nn.ReLU(), *conv_norm(out, out))
    same = stride == 1 and inside == out
    return Residual(body, None if same else nn.Sequential(*conv_norm(inside, out, 1, stride)), nn.ReLU())


def resnet(widths, blocks, classes=10, channels=3):
    layers, inside = [*conv_norm(channels, widths[0]), nn.ReLU()], widths[0]
    for width in widths:
        for block in range(blocks):
            layers.append(basic_block(inside, width, 2 if block == 0 and width != widths[0] else 1))
            inside = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, classes))


def plain(widths, classes=10, channels=3, size=32):
    """3 x 3 convolutions of these widths with batch norm and ReLU, a 2 x 2 maximum where there is a 0."""
    layers, inside = [], channels
    for width in widths:
        layers += [*conv_norm(inside, width), nn.ReLU()] if width else [nn.MaxPool2d(2)]
        inside = width or inside
    side = size >> widths.count(0)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inside * side * side, classes))


def lenet(classes=10, channels=1, size=28):
    side = (size // 2 - 4) // 2
    return nn.Sequential(nn.Conv2d(channels, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * side * side, 120), nn.ReLU(), nn.Linear(120, 84),
                         nn.ReLU(), nn.Linear(84, classes))


def inverted_residual(inside, out, stride, expansion):
    middle = inside * expansion
    body = nn.Sequential(*([*conv_norm(inside, middle, 1), nn.ReLU6()] if expansion > 1 else ()),
                         *conv_norm(middle, middle, 3, stride, middle), nn.ReLU6(), *conv_norm(middle, out, 1))
    return Residual(body) if stride == 1 and inside == out else body


def mobilenet_v2(classes=10, channels=3):
    layers, inside = [*conv_norm(channels, 32), nn.ReLU6()], 32
    for expansion, out, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                           (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            layers.append(inverted_residual(inside, out, stride if block == 0 else 1, expansion))
            inside = out
    return nn.Sequential(*layers, *conv_norm(inside, 1280, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(1280, classes))


class ChannelNorm(nn.Module):
    """A layer norm over the channels of images."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.LayerNorm(channels, eps=1e-6)

    def forward(self, x):
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.channelwise = nn.Sequential(nn.LayerNorm(channels, eps=1e-6), nn.Linear(channels, 4 * channels), nn.GELU(),
                                         nn.Linear(4 * channels, channels))
        self.scale = nn.Parameter(torch.full((channels,), 1e-6))

    def forward(self, x):
        y = self.channelwise(self.depthwise(x).permute(0, 2, 3, 1)) * self.scale
        return x + y.permute(0, 3, 1, 2)


def convnext_atto(classes=10, channels=3):
    layers, inside = [], channels
    for width, blocks in ((40, 2), (80, 2), (160, 6), (320, 2)):
        halving = nn.Conv2d(inside, width, 2, 2)
        layers += [halving, ChannelNorm(width)] if not layers else [ChannelNorm(inside), halving]
        layers += [ConvNextBlock(width) for _ in range(blocks)]
        inside = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(inside, eps=1e-6),
                         nn.Linear(inside, classes))


def double_conv(inside, out):
    return nn.Sequential(*conv_norm(inside, out), nn.ReLU(), *conv_norm(out, out), nn.ReLU())


class Level(nn.Module):
    def __init__(self, inside, width, below, deeper):
        super().__init__()
        self.before, self.after = double_conv(inside, width), double_conv(2 * width, width)
        self.inside = nn.Sequential(nn.MaxPool2d(2), deeper, nn.ConvTranspose2d(below, width, 2, 2))

    def forward(self, x):
        y = self.before(x)
        return self.after(torch.cat((y, self.inside(y)), 1))


def unet(widths, classes, channels=3):
    net = double_conv(*widths[-2:])
    for inside, width, below in reversed(list(zip((channels, *widths), widths, widths[1:]))):
        net = Level(inside, width, below, net)
    return nn.Sequential(net, nn.Conv2d(widths[0], classes, 1))


def generator(width):
    layers, inside = [], 100
    for out in (8 * width, 4 * width, 2 * width, width, 3):
        first = inside == 100
        layers.append(nn.ConvTranspose2d(inside, out, 4, 1 if first else 2, 0 if first else 1, bias=False))
        layers += [nn.BatchNorm2d(out), nn.ReLU()] if out > 3 else [nn.Tanh()]
        inside = out
    return nn.Sequential(*layers)


def discriminator(width):
    layers, inside = [], 3
    for out in (width, 2 * width, 4 * width, 8 * width, 1):
        layers.append(nn.Conv2d(inside, out, 4, 2 if out > 1 else 1, 1 if out > 1 else 0, bias=False))
        layers += [nn.BatchNorm2d(out)] if out > width else []
        layers += [nn.LeakyReLU(0.2)] if out > 1 else []
        inside = out
    return nn.Sequential(*layers)


def voxels(classes=2, channels=1):
    layers, inside = [], channels
    for out in (16, 32, 64):
        layers += [nn.Conv3d(inside, out, 3, padding=1, bias=False), nn.BatchNorm3d(out), nn.ReLU(), nn.MaxPool3d(2)]
        inside = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(64, classes))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.add_module("in", nn.Linear(width, 3 * width))
        self.out = nn.Linear(width, width)

    def forward(self, x):
        n, length, width = x.shape
        query, key, value = getattr(self, "in")(x).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(x.shape))


class CharTransformer(nn.Module):
    def __init__(self, characters=65, length=64, width=128, heads=4, layers=4):
        super().__init__()
        self.characters, self.places = nn.Embedding(characters, width), nn.Embedding(length, width)
        body = []
        for _ in range(layers):
            body.append(Residual(nn.Sequential(nn.LayerNorm(width), Attention(width, heads))))
            body.append(Residual(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                               nn.Linear(4 * width, width))))
        self.body = nn.Sequential(*body, nn.LayerNorm(width), nn.Linear(width, characters))

    def forward(self, text):
        return self.body(self.characters(text) + self.places(torch.arange(text.shape[1], device=text.device)))


def torchvision_network(name):
    def make(**options):
        import torchvision  # which the networks above do without
        return getattr(torchvision.models, name)(
            **{{"classes": "num_classes", "size": "image_size"}[key]: value for key, value in options.items()})
    return make


# Of models/imagenet.h: torchvision's own.
IMAGENET = ("resnet18", "resnet34", "resnet50", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large",
            "efficientnet_b0", "convnext_tiny", "densenet121", "vgg11_bn", "vit_b_16")

# By the name of the function or class in models/, of the options that it has there.
NETWORKS = {
    "small_cnn": lambda classes, channels, size: plain((32, 0, 64, 0, 128, 0), classes, channels, size),
    "resnet20": lambda classes, channels, size: resnet((16, 32, 64), 3, classes, channels),
    "resnet18": lambda classes, channels, size: resnet((64, 128, 256, 512), 2, classes, channels),
    "vgg11": lambda classes, channels, size: plain((64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0), classes,
                                                   channels, size),
    "mobilenet_v2": lambda classes, channels, size: mobilenet_v2(classes, channels),
    "convnext_atto": lambda classes, channels, size: convnext_atto(classes, channels),
    "lenet": lenet,
    "voxel_net": lambda classes, channels: voxels(classes, channels),
    "unet": unet,
    "dcgan_generator": lambda width: generator(width),
    "dcgan_discriminator": lambda width: discriminator(width),
    "char_transformer": CharTransformer,
    **{"imagenet." + name: torchvision_network(name) for name in IMAGENET},
}
MODELS = {
    "small": lambda: NETWORKS["small_cnn"](10, 3, 32),
    "resnet20": lambda: NETWORKS["resnet20"](10, 3, 32),
    "resnet18": lambda: NETWORKS["resnet18"](10, 3, 32),
    "vgg11": lambda: NETWORKS["vgg11"](10, 3, 32),
    "lenet": lenet,
    "mobilenet_v2": mobilenet_v2,
    "unet": lambda: unet((32, 64, 128, 256), 2),
    "voxels": voxels,
    "chars": CharTransformer,
}
# Sizes of an input and of its labels, and the number of classes, where these are not those of CIFAR-10.
DATA = {"lenet": ((1, 28, 28), (), 10), "unet": ((3, 64, 64), (64, 64), 2), "voxels": ((1, 32, 32, 32), (), 2)}

# Those of bench/inference_networks.cpp that stand here.
INFERENCE = {"char_transformer": lambda: CharTransformer(), "convnext_atto": lambda: convnext_atto(1000),
             "mobilenet_v2": lambda: mobilenet_v2(1000),
             **{name: MODELS[name] for name in ("resnet18", "resnet20", "unet", "vgg11", "voxels")}}


def make_inference(model, batch):
    """A network in evaluation mode, and an input."""
    size = (3, 64, 64) if model == "convnext_atto" else DATA.get(model, ((3, 32, 32),))[0]
    x = torch.randint(65, (batch, 64)) if model == "char_transformer" else torch.randn(batch, *size)
    return INFERENCE[model]().eval(), x


def count(*nets):
    return sum(p.numel() for net in nets for p in net.parameters())


def make_step(model, batch, device, in_format, compiled):
    """A training step, and the number of its parameters. `in_format` brings images and networks into a format."""
    compile_ = torch.compile if compiled else lambda f: f
    if model == "dcgan":
        return dcgan_step(batch, device, in_format, compile_)
    net = in_format(MODELS[model]().to(device))
    call = compile_(net)
    if model == "chars":
        x, labels = torch.randint(65, (batch, 64), device=device), torch.randint(65, (batch * 64,), device=device)
        loss = lambda: F.cross_entropy(call(x).flatten(0, 1), labels)
        optimizer = torch.optim.AdamW(net.parameters(), 1e-4)
    else:
        size, label, classes = DATA.get(model, ((3, 32, 32), (), 10))
        x = in_format(torch.randn(batch, *size, device=device))
        labels = torch.randint(classes, (batch, *label), device=device)
        loss = lambda: F.cross_entropy(call(x), labels)
        optimizer = torch.optim.SGD(net.parameters(), 1e-4, momentum=0.9, weight_decay=5e-4, nesterov=True)

    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    return step, count(net)


def dcgan_step(batch, device, in_format, compile_):
    """A step of the discriminator on real and made images, and one of the generator."""
    nets = [in_format(net(64).to(device)) for net in (generator, discriminator)]
    make, judge = map(compile_, nets)
    adam_make, adam_judge = (torch.optim.Adam(net.parameters(), 1e-4, (0.5, 0.999)) for net in nets)
    noise, real = (in_format(torch.randn(batch, *size, device=device)) for size in ((100, 1, 1), (3, 64, 64)))
    loss = lambda judged, like: F.binary_cross_entropy_with_logits(judged, like(judged))

    def step():
        made = make(noise)
        adam_judge.zero_grad()
        (loss(judge(real), torch.ones_like) + loss(judge(made.detach()), torch.zeros_like)).backward()
        adam_judge.step()
        adam_make.zero_grad()
        loss(judge(made), torch.ones_like).backward()
        adam_make.step()
    return step, count(*nets)
