"""Convolutions as bench/compare_torch.py gives them to both sides, and files of them."""
import csv
import math


def convolution(input, weight, stride, padding, dilation=None, groups=1):
    """Input [N, C, spatial...], weight [K, C / groups, kernel...]."""
    return dict(input=input, weight=weight, stride=stride, padding=padding,
                dilation=dilation or [1] * len(stride), groups=groups)


def windows(conv, sizes):
    """(size, reach of the kernel, stride, padding) of each spatial dimension."""
    reaches = (dilation * (taps - 1) + 1 for taps, dilation in zip(conv["weight"][2:], conv["dilation"]))
    return zip(sizes, reaches, conv["stride"], conv["padding"])


def output(conv):
    return [(size + 2 * padding - reach) // stride + 1
            for size, reach, stride, padding in windows(conv, conv["input"][2:])]


def transpose(conv):
    """The layer that computes what the gradient of this convolution with respect to its input does. It has the same
    weight."""
    x = [conv["input"][0], conv["weight"][0], *output(conv)]
    reached = [(size - 1) * stride - 2 * padding + reach for size, reach, stride, padding in windows(conv, x[2:])]
    left = [wanted - size for wanted, size in zip(conv["input"][2:], reached)]
    return conv | {"input": x, "transposed": True, "output_padding": left}


def gflop(conv):
    outputs = conv["input"][2:] if conv.get("transposed") else output(conv)
    return 2e-9 * conv["input"][0] * math.prod(outputs) * math.prod(conv["weight"])


def read_layers(path, batch=math.inf):
    """Names and convolutions of a file with the columns name,dims,n,g,ic,oc,id,ih,iw,kd,kh,kw,sd,sh,sw,pd,ph,pw,dd,dh,
    dw,od,oh,ow, in which dilation counts from 1; batches no larger than `batch`. With a 1 in the column transposed the
    layer is the transpose of what the row says. Raises OSError, and ValueError for a row that is no convolution."""
    convs = []
    with open(path, newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            try:
                axes = "dhw"[3 - int(row["dims"]):]
                i, k, s, p, d, o = ([int(row[letter + axis]) for axis in axes] for letter in "ikspdo")
                n, groups, channels, filters = (int(row[key]) for key in ("n", "g", "ic", "oc"))
                conv = convolution([min(n, batch), channels, *i], [filters, channels // groups, *k], s, p, d, groups)
                name, transposed = row["name"], row.get("transposed") == "1"
            except KeyError as error:
                raise ValueError(f"{path}: the column {error} is missing") from error
            except (TypeError, ValueError) as error:
                raise ValueError(f"{path}:{number}: not a convolution: {error!r}") from error
            # Where the padding of the two sides differs, the low one for both gives the same output.
            if output(conv) != o:
                raise ValueError(f"{path}:{number}: {name}: the output would be {output(conv)}, not {o}")
            convs.append((name, transpose(conv) if transposed else conv))
    return convs
