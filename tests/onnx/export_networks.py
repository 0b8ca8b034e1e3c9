#!/usr/bin/env python3
"""Writes networks of PyTorch as ONNX files, with what they compute, for import_networks_test.cpp:

    export_networks.py FOLDER [NAME ...]

Needs torch, torchvision, onnxscript and onnxruntime; timm and transformers for their networks. Weights are random. A folder
NAME.EXPORTER has model.onnx, x.npy, y.npy (by onnxruntime) and grads.npz: the gradients of mean(y^2) by parameter,
by PyTorch in float64. A file that onnxruntime refuses is left out.
"""

import contextlib
import copy
import io
import os
import shutil
import sys
import warnings

import numpy as np
import onnxruntime
import torch
from torch import nn

warnings.filterwarnings("ignore")


class Unet(nn.Module):
    def __init__(self):
        super().__init__()

        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(),
                                 nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())

        self.down1, self.down2, self.bottom = block(3, 16), block(16, 32), block(32, 64)
        self.up = nn.ConvTranspose2d(64, 32, 2, 2)
        self.side1, self.side2, self.out = block(64, 32), block(48, 16), nn.Conv2d(16, 4, 1)
        self.larger = nn.Upsample(scale_factor=2, mode="bilinear")

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(nn.functional.max_pool2d(a, 2))
        y = self.up(self.bottom(nn.functional.max_pool2d(b, 2)))
        y = self.side1(torch.cat([y, b], 1))
        return self.out(self.side2(torch.cat([self.larger(y), a], 1)))


class Recurrent(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.embedding, self.layer, self.fc = nn.Embedding(50, 24), layer, nn.LazyLinear(10)

    def forward(self, x):
        return self.fc(self.layer(self.embedding(x))[0][:, -1])


class Part(nn.Module):
    """One of several results."""

    def __init__(self, net, take):
        super().__init__()
        self.net, self.take = net, take

    def forward(self, x):
        return self.take(self.net(x))


def torchvision_networks():
    from torchvision import models as m
    pictures = torch.randn(2, 3, 64, 64)
    for name in ("resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large", "efficientnet_b0",
                 "densenet121", "squeezenet1_1", "shufflenet_v2_x1_0", "regnet_y_400mf", "convnext_tiny", "swin_t",
                 "vgg11_bn", "mnasnet0_5", "alexnet"):
        yield name, lambda name=name: getattr(m, name)(num_classes=10), pictures
    yield "googlenet", lambda: m.googlenet(num_classes=10, aux_logits=False, init_weights=False), pictures
    yield ("inception_v3", lambda: m.inception_v3(num_classes=10, aux_logits=False, init_weights=False),
           torch.randn(2, 3, 96, 96))
    yield "vit_b_16", lambda: m.VisionTransformer(64, 16, 3, 4, 192, 384, num_classes=10), pictures
    segmentation = m.segmentation
    yield ("deeplabv3", lambda: Part(segmentation.deeplabv3_mobilenet_v3_large(weights_backbone=None, num_classes=5),
                                     lambda y: y["out"]), pictures)
    yield ("fcn", lambda: Part(segmentation.fcn_resnet50(weights_backbone=None, num_classes=5), lambda y: y["out"]),
           pictures)
    yield "r2plus1d_18", lambda: m.video.r2plus1d_18(num_classes=4), torch.randn(1, 3, 8, 32, 32)


def timm_networks():
    import timm
    for name in ("resnext50_32x4d", "mixer_s32_224", "efficientvit_b0", "mobilevit_xxs", "edgenext_xx_small",
                 "repvgg_a0", "ghostnet_100", "poolformer_s12"):
        size = 224 if "mixer" in name else 64
        yield "timm_" + name, lambda name=name: timm.create_model(name, num_classes=10), torch.randn(2, 3, size, size)


def text_networks():
    yield ("lstm", lambda: Recurrent(nn.LSTM(24, 32, 2, batch_first=True, bidirectional=True)),
           torch.randint(0, 50, (2, 7)))
    yield "gru", lambda: Recurrent(nn.GRU(24, 32, batch_first=True)), torch.randint(0, 50, (2, 7))
    import transformers as t
    words = torch.randint(0, 90, (2, 16))
    yield ("gpt2", lambda: Part(t.GPT2LMHeadModel(t.GPT2Config(vocab_size=90, n_positions=32, n_embd=48, n_layer=2,
                                                               n_head=4, attn_implementation="eager")),
                                lambda y: y.logits), words)
    yield ("bert", lambda: Part(t.BertForSequenceClassification(t.BertConfig(
        vocab_size=90, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
        num_labels=5)), lambda y: y.logits), words)
    yield ("llama", lambda: Part(t.LlamaForCausalLM(t.LlamaConfig(
        vocab_size=90, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=96, use_cache=False)), lambda y: y.logits), words)


def networks():
    yield "unet", Unet, torch.randn(2, 3, 32, 32)
    for family in torchvision_networks, text_networks, timm_networks:
        try:
            yield from family()
        except ImportError as error:
            print(f"{family.__name__}: {error}")


def export(kind, net, x, path):
    if kind == "dynamo":
        torch.onnx.export(net, (x,), path, dynamo=True, dynamic_shapes=({0: "batch"},), external_data=False, optimize=False)
    else:
        torch.onnx.export(net, (x,), path, dynamo=False, input_names=["x"], output_names=["y"],
                          dynamic_axes={"x": {0: "batch"}}, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.PRESERVE)


def main():
    folder, only = sys.argv[1], sys.argv[2:]
    torch.manual_seed(0)
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4
    for name, make, x in networks():
        if only and name not in only:
            continue
        torch.manual_seed(0)
        net = make()
        with torch.no_grad():
            net.train()
            net(x)  # batch norms have seen something
            for parameter in net.parameters():
                if parameter.std() < 1e-6 or parameter.ndim == 1:
                    parameter += 0.1 * torch.randn_like(parameter)
        net.eval()
        wide = copy.deepcopy(net).double()
        (wide(x.double() if x.is_floating_point() else x) ** 2).mean().backward()
        gradients = {n: p.grad.numpy() for n, p in wide.named_parameters() if p.grad is not None}
        for kind in "dynamo", "older":
            place = os.path.join(folder, f"{name}.{kind}")
            os.makedirs(place, exist_ok=True)
            try:
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    export(kind, net, x, os.path.join(place, "model.onnx"))
                session = onnxruntime.InferenceSession(os.path.join(place, "model.onnx"), quiet)
                y = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
            except Exception as error:  # noqa: BLE001: exporters throw anything
                shutil.rmtree(place)
                print(f"{name}: {kind}: {str(error)[:100]!r}", flush=True)
                continue
            np.save(os.path.join(place, "x.npy"), x.numpy())
            np.save(os.path.join(place, "y.npy"), y)
            np.savez(os.path.join(place, "grads.npz"), **gradients)
        print(name, flush=True)


if __name__ == "__main__":
    main()
