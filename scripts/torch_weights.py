#!/usr/bin/env python3
"""Weights of the networks of models/ from PyTorch to Pleat and back.

    torch_weights.py to-pleat resnet18 weights.pt weights.safetensors --classes 10
    torch_weights.py to-torch resnet18 weights.safetensors weights.pt --classes 10
    torch_weights.py to-pleat imagenet.resnet50 resnet50-11ad3fa6.pth resnet50.safetensors

The networks are those of scripts/torch_networks.py, where names and shapes are Pleat's. An entry that is missing or
unexpected, or has another shape, is an error that lists all of them, and nothing is written. What a .pt file holds
beside tensors is not read; a dictionary with the entry "state_dict" or "model" stands for that entry, and "module." and
"_orig_mod." before all names are dropped. --by-order takes the tensors by their order instead of their names, for
networks of other names. Those called imagenet. are torchvision's: files as it publishes them are read, with the names that
older ones have. Needs torch and safetensors, and torchvision for these.
"""

import argparse
import pathlib
import re
import sys

import torch
from safetensors.torch import load_file, save_file

import torch_networks


class WeightsError(Exception):
    pass


def network(args):
    """The network on no device: its names, shapes and types are all that is wanted."""
    given = {"classes": args.classes, "channels": args.channels, "size": args.image_size, "width": args.width,
             "widths": args.widths, "characters": args.characters, "length": args.length, "heads": args.heads,
             "layers": args.layers}
    wanted = {
        "unet": {"widths": (32, 64, 128, 256), "classes": None, "channels": 3},
        "voxel_net": {"classes": None, "channels": 1},
        "lenet": {"classes": None, "channels": 1, "size": 28},
        "dcgan_generator": {"width": 64},
        "dcgan_discriminator": {"width": 64},
        "char_transformer": {"characters": 65, "length": 64, "width": 128, "heads": 4, "layers": 4},
        "imagenet.vit_b_16": {"classes": 1000, "size": 224},
        **{"imagenet." + name: {"classes": 1000} for name in torch_networks.IMAGENET if name != "vit_b_16"},
    }.get(args.network, {"classes": None, "channels": 3, "size": 32})
    unused = [name for name, value in given.items() if value is not None and name not in wanted]
    if unused:
        raise WeightsError(f"{args.network} has no option {', '.join(unused)}; it has {', '.join(wanted)}")
    options = {name: default if given[name] is None else given[name] for name, default in wanted.items()}
    if None in options.values():
        raise WeightsError(f"{args.network} needs --classes")
    with torch.device("meta"):
        return torch_networks.NETWORKS[args.network](**options)


def read(path):
    if path.suffix == ".safetensors":
        return load_file(path)
    content = torch.load(path, map_location="cpu", weights_only=True)
    for key in ("state_dict", "model"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict) or not all(isinstance(t, torch.Tensor) for t in content.values()):
        raise WeightsError(f"{path}: this is no dictionary of tensors; save net.state_dict()")
    for prefix in ("module.", "_orig_mod."):
        if content and all(name.startswith(prefix) for name in content):
            content = {name[len(prefix):]: tensor for name, tensor in content.items()}
    return content


def renamed(state, wanted):
    """A state of published weights with today's names: those of DenseNet and ViT changed, and batch norms did not always
    count their batches."""
    new = {re.sub(r"(denselayer\d+\.(?:norm|conv))\.(\d)", r"\1\2", name): tensor for name, tensor in state.items()}
    for old, number in (("linear_1", "0"), ("linear_2", "3")):
        new = {name.replace(f".mlp.{old}.", f".mlp.{number}."): tensor for name, tensor in new.items()}
    counts = {name: torch.zeros((), dtype=torch.int64) for name in wanted if name.endswith(".num_batches_tracked")}
    return {**counts, **new} if not counts.keys() & new.keys() else new


def matched(state, wanted, by_order):
    """The state with the names that are wanted, in their order. Raises WeightsError with all that does not fit."""
    if by_order:
        if len(state) != len(wanted):
            raise WeightsError(f"by order: there are {len(state)} tensors, the network has {len(wanted)}")
        pairs = list(zip(wanted, state))
    else:
        problems = [f"missing: {name} {list(tensor.shape)}" for name, tensor in wanted.items() if name not in state]
        problems += [f"unexpected: {name} {list(tensor.shape)}" for name, tensor in state.items() if name not in wanted]
        if problems:
            raise WeightsError("\n".join(problems))
        pairs = [(name, name) for name in wanted]
    problems = [f"shape: {given} {list(state[given].shape)}, the network has {name} {list(wanted[name].shape)}"
                for name, given in pairs if state[given].shape != wanted[name].shape]
    problems += [f"type: {given} is {state[given].dtype}, {name} of the network {wanted[name].dtype}"
                 for name, given in pairs if state[given].is_floating_point() != wanted[name].is_floating_point()]
    if problems:
        raise WeightsError("\n".join(problems))
    # Of their own, as safetensors keeps no two names for one tensor.
    return {name: state[given].detach().clone().contiguous() for name, given in pairs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("direction", choices=("to-pleat", "to-torch"))
    parser.add_argument("network", choices=list(torch_networks.NETWORKS), help="its name in models/")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path, help=".safetensors, or .pt for to-torch")
    parser.add_argument("--by-order", action="store_true", help="match tensors by their order, not by name")
    parser.add_argument("--widths", type=lambda text: tuple(map(int, text.split(","))), help="of unet: 32,64,128,256")
    for name, what in (("classes", "of classifiers and unet"), ("channels", "of the input"),
                       ("image-size", "of small_cnn, vgg11, lenet and vit_b_16"), ("width", "of dcgan and char_transformer"),
                       ("characters", "of char_transformer"), ("length", "of char_transformer"),
                       ("heads", "of char_transformer"), ("layers", "of char_transformer")):
        parser.add_argument("--" + name, type=int, help=what)
    args = parser.parse_args()
    try:
        if args.direction == "to-pleat" and args.target.suffix != ".safetensors":
            raise WeightsError(f"{args.target}: Pleat reads .safetensors")
        state, wanted = read(args.source), network(args).state_dict()
        if args.network.startswith("imagenet."):
            state = renamed(state, wanted)
        state = matched(state, wanted, args.by_order)
    except WeightsError as error:
        print(f"torch_weights.py: {args.source} as {args.network}:\n{error}", file=sys.stderr)
        return 1
    if args.target.suffix == ".safetensors":
        save_file(state, args.target)
    else:
        torch.save(state, args.target)
    print(f"{len(state)} tensors, {sum(t.numel() for t in state.values()):,} numbers: {args.target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
