"""Networks of PyTorch that nobody has written in Pleat: torchvision's, timm's and transformers', and small ones of other
kinds. compare_torch.py --only hub trains them on both sides, in Pleat as onnx::import_onnx gives them."""
import warnings

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")


class Recurrent(nn.Module):
    def __init__(self, layer, width):
        super().__init__()
        self.embedding, self.layer, self.fc = nn.Embedding(50, 24), layer, nn.Linear(width, 10)

    def forward(self, x):
        return self.fc(self.layer(self.embedding(x))[0][:, -1])


class Part(nn.Module):
    """One of several results."""

    def __init__(self, net, name):
        super().__init__()
        self.net, self.name = net, name

    def forward(self, x):
        return self.net(x)[self.name]


class Signal(nn.Module):
    """Convolutions of one dimension by stride 2, written as functions."""

    def __init__(self):
        super().__init__()
        widths = [1, 32, 64, 128, 128]
        self.convs = nn.ModuleList(nn.Conv1d(i, o, 9, 2, 4) for i, o in zip(widths, widths[1:]))
        self.norms = nn.ModuleList(nn.BatchNorm1d(o) for o in widths[1:])
        self.fc = nn.Linear(128, 10)

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms):
            x = F.relu(norm(conv(x)))
        return self.fc(x.mean(-1))


class Dilated(nn.Module):
    """A temporal convolutional network."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv1d(8, 48, 1), nn.Conv1d(48, 8, 1)
        self.convs = nn.ModuleList(nn.Conv1d(48, 48, 3, padding=d, dilation=d) for d in (1, 2, 4, 8, 16, 32))

    def forward(self, x):
        x = self.first(x)
        for conv in self.convs:
            x = x + F.gelu(conv(x))
        return self.last(x)


class Graph(nn.Module):
    """Sums over the edges of a graph."""

    def __init__(self):
        super().__init__()
        for name in "source", "target":
            self.register_buffer(name, torch.randint(0, 2000, (12000,)))
        self.layers = nn.ModuleList([nn.Linear(64, 96), nn.Linear(96, 96), nn.Linear(96, 16)])

    def forward(self, x):
        for layer in self.layers:
            sent = layer(x)
            at = self.target[:, None].expand(-1, sent.shape[1])
            x = F.relu(torch.zeros_like(sent).scatter_add(0, at, sent[self.source]))
        return x


class Voxels(nn.Module):
    def __init__(self):
        super().__init__()

        def block(i, o, stride):
            return nn.Sequential(nn.Conv3d(i, o, 3, stride, 1, bias=False), nn.BatchNorm3d(o), nn.ReLU())
        self.net = nn.Sequential(block(1, 16, 1), block(16, 32, 2), block(32, 32, 1), block(32, 64, 2), block(64, 64, 1),
                                 nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(64, 10))

    def forward(self, x):
        return self.net(x)


class Gates(nn.Module):
    """Small layers, many functions of elements."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = nn.Linear(64, 256), nn.Linear(64, 256), nn.Linear(256, 256), nn.Linear(256, 10)

    def forward(self, x):
        x = F.layer_norm(torch.tanh(self.a(x)) * torch.sigmoid(self.b(x)), (256,))
        return self.d(F.softplus(self.c(x)) - F.elu(x))


def torchvision(name, **options):
    from torchvision import models
    return getattr(models, name)(num_classes=10, **options)


def timm(name):
    import timm
    return timm.create_model(name, num_classes=10)


def gpt2():
    import transformers as t
    none = {f"{part}_pdrop": 0 for part in ("resid", "embd", "attn")}
    return Part(t.GPT2LMHeadModel(t.GPT2Config(vocab_size=256, n_positions=128, n_embd=192, n_layer=4, n_head=6, **none,
                                               attn_implementation="eager")), "logits")


def bert():
    import transformers as t
    none = {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}
    return Part(t.BertForSequenceClassification(t.BertConfig(
        vocab_size=256, hidden_size=192, num_hidden_layers=4, num_attention_heads=6, intermediate_size=768, num_labels=5,
        **none)), "logits")


def pictures(batch, size=96):
    return lambda: torch.randn(batch, 3, size, size)


def words(batch, length, count):
    return lambda: torch.randint(0, count, (batch, length))


TORCHVISION = {"resnet34": 8, "resnext50_32x4d": 4, "mobilenet_v3_large": 8, "efficientnet_b0": 8, "densenet121": 4,
               "shufflenet_v2_x1_0": 8, "regnet_y_400mf": 8, "regnet_x_800mf": 8, "convnext_tiny": 4, "swin_t": 4,
               "squeezenet1_1": 8, "mnasnet1_0": 8, "googlenet": 8, "inception_v3": 4}
LOSSES_BESIDE = {name: {"aux_logits": False, "init_weights": False} for name in ("googlenet", "inception_v3")}
TIMM = {"wide_resnet50_2": (4, 96), "mixer_s32_224": (4, 224), "convmixer_768_32": (1, 96), "ghostnet_100": (8, 96),
        "poolformer_s12": (4, 96), "edgenext_xx_small": (8, 96), "mobilevit_xxs": (8, 96), "efficientvit_b0": (8, 96),
        "deit_tiny_patch16_224": (4, 224), "resmlp_12_224": (4, 224), "coat_tiny": (2, 224), "res2net50_26w_4s": (4, 96),
        "hrnet_w18_small": (4, 96)}
# How each is made, and an input.
NETWORKS = {
    **{name: (lambda name=name: torchvision(name, **LOSSES_BESIDE.get(name, {})), pictures(batch))
       for name, batch in TORCHVISION.items()},
    **{name: (lambda name=name: timm(name), pictures(*shape)) for name, shape in TIMM.items()},
    "gpt2": (gpt2, words(4, 64, 256)), "bert": (bert, words(4, 64, 256)),
    "lstm": (lambda: Recurrent(nn.LSTM(24, 256, 2, batch_first=True), 256), words(16, 40, 50)),
    "bilstm": (lambda: Recurrent(nn.LSTM(24, 128, 2, batch_first=True, bidirectional=True), 256), words(16, 40, 50)),
    "gru": (lambda: Recurrent(nn.GRU(24, 256, 2, batch_first=True), 256), words(16, 40, 50)),
    "signal": (Signal, lambda: torch.randn(16, 1, 1024)), "dilated": (Dilated, lambda: torch.randn(16, 8, 512)),
    "graph": (Graph, lambda: torch.randn(2000, 64)), "voxels": (Voxels, lambda: torch.randn(4, 1, 24, 24, 24)),
    "gates": (Gates, lambda: torch.randn(512, 64))}


def make(name):
    """The network in training mode, and an input, the same at each call."""
    torch.manual_seed(1)
    make_network, make_input = NETWORKS[name]
    return make_network().train(), make_input()


def export(name, path):
    """Writes the network to `path` and its input beside it, PATH.npy."""
    net, x = make(name)
    torch.onnx.export(net, (x,), path, dynamo=False, input_names=["x"], output_names=["y"], do_constant_folding=False,
                      training=torch.onnx.TrainingMode.TRAINING)
    np.save(path + ".npy", x.numpy())
