#!/usr/bin/env python3
"""Writes the inputs from which the fuzz targets start, corpus/<target>/<name>: a few kilobytes for each target.

    make_corpus.py

Takes nothing but Python: files of other programs come from ../fixtures/files.json, the rest stands below.
"""

import json
import pathlib
import re
import shutil
import struct
import zlib

HERE = pathlib.Path(__file__).resolve().parent
ONNX_CASES = json.loads((HERE.parent / "fixtures" / "onnx_nodes.json").read_text())["cases"]
CASES = json.loads((HERE.parent / "fixtures" / "files.json").read_text())["cases"]


def write(target: str, inputs: dict[str, bytes]) -> None:
    folder = HERE / "corpus" / target
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, data in inputs.items():
        (folder / re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")).write_bytes(data)


def fixtures(op: str, wanted) -> dict[str, bytes]:
    return {case["name"]: bytes.fromhex(case["file"]) for case in CASES if case["op"] == op and wanted(case["name"])}


def texts(*lines: str) -> dict[str, bytes]:
    return {f"{i:02}": line.encode() for i, line in enumerate(lines)}


def npy(header: str, data: bytes, version: bytes = b"\1\0") -> bytes:
    return b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header.encode() + data


def safetensors(header: str, data: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header.encode() + data


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, bits: int, color: int, interlaced: int, rows: bytes, *more: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(more) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


def tuning(pass_name: str) -> str:
    timing = {"pass": pass_name, "implementation": "direct", "milliseconds": 0.5, "fastest": 0.4, "workspace_bytes": 1024,
              "gflops": 12.5}
    failed = dict(timing, implementation="cudnn", failure="no GPU")
    entry = {"machine": "a CPU, 2 threads", "versions": "pleat 0.1.0", "problem": "n1 c1 k1 hw3 r3", "timings": [timing, failed]}
    return json.dumps({"format": "pleat convolution timings", "version": 1, "entries": [entry]})


def results() -> str:
    time = {"first_call": 0.1, "tuning": 0, "block_size": 10, "threads": 2, "cold_cache": False, "times": [9e-4, 1e-3, 2e-3]}
    record = {"subcommand": "conv", "labels": {"problem": "n1 c1 k1 hw3 r3", "pass": "forward"}, "details": {"plan": "x"},
              "time": time, "values": {"gflops": 3.5}}
    return json.dumps({"pleat_bench": 2, "machine": "m", "command": "pleat-bench conv", "time_unit": "s",
                       "results": [record, dict(record, failure="no GPU")]})


def cifar(label_bytes: int, labels: list[int]) -> bytes:
    return b"".join(bytes([label] * label_bytes) + bytes(3072) for label in labels)


def main() -> None:
    few_npy = fixtures("npy", lambda name: name in ["b1", ">u8", "<i2", "<f4", "fortran order", "rank 0", "empty", "version 2"])
    few_npy["no byte order"] = npy("{'descr': 'f4', 'fortran_order': True, 'shape': (2, 1), }\n", bytes(8))
    write("npy", few_npy)
    write("npz", fixtures("npz", lambda name: True))
    write("safetensors", fixtures("safetensors", lambda name: True) | {
        "unknown fields": safetensors('{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":[{"a":[1]}]}} ', bytes(4)),
        "two": safetensors('{"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]},"b":{"dtype":"F8_E4M3","shape":[2,2],'
                           '"data_offsets":[0,4]},"__metadata__":{"k":"v"}}', bytes(8))})
    # One of each operator, the small ones.
    write("onnx", {case["op"]: bytes.fromhex(case["model"]) for case in ONNX_CASES if len(case["model"]) < 700})
    write("png", fixtures("image", lambda name: name.endswith(".png")) | {
        "interlaced": png(3, 3, 8, 2, 1, bytes(60)),
        "sixteen bits": png(2, 2, 16, 6, 0, bytes(34)),
        "with text": png(2, 1, 8, 0, 0, bytes(3), chunk(b"tEXt", b"key\0value"), chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(99)))),
        "transparent palette": png(4, 1, 2, 3, 0, bytes(2), chunk(b"PLTE", bytes(12)), chunk(b"tRNS", b"\0\1"))})
    write("jpeg", fixtures("jpeg", lambda name: name in ["420", "progressive", "gray", "cmyk"]))
    write("pnm", {"gray text": b"P2\n# a comment\n2 1 # another\n4\n0 3", "color text": b"P3 1 2 255 1 2 3 4 5 6",
                  "gray": b"P5 2 1 15 \x0f\x05", "color": b"P6 2 1 255 abcdef", "wide": b"P5 2 1 65535 \xff\xff\x80\0"})
    write("csv", texts("\ufeffid,weight,name\r\n1, 0.5 ,\"a, \"\"b\"\"\"\r\n\r\n-2,+1e3,\"two\nlines\"\n3,,\n",
                       "a,b\r1,99999999999999999999\rnan,-inf", "x\n1\n2\n", ",,\n,,\n", "a,\"b\n"))
    write("idx", fixtures("idx", lambda name: True))
    write("cifar", {"ten": cifar(1, [3]), "hundred": cifar(2, [7]),
                    "names": b"".join(b"class %d\n" % i for i in range(10)), "eleven": cifar(1, [11])})
    write("tuning", texts(tuning("forward"), tuning("backward_weight"), '{"format":"pleat convolution timings","version":1,"entries":[]}'))
    write("results", texts(results(), '{"pleat_bench":2,"machine":"","command":"","results":[]}'))
    write("conv_shapes_csv", texts(
        "name,n,g,ic,oc,id,ih,iw,kd,kh,kw,sd,sh,sw,pd,ph,pw,dd,dh,dw\nres2a,1,1,64,64,1,56,56,1,3,3,1,1,1,0,1,1,1,1,1\n",
        "n,g,ic,oc,id,ih,iw,kd,kh,kw,sd,sh,sw,pd,ph,pw,dd,dh,dw,dims,pd_r,ph_r,pw_r,od,oh,ow,sym\n"
        "2,2,4,4,1,8,8,1,3,3,1,2,2,0,1,1,1,1,1,2,0,1,1,1,4,4,0\n",
        '"name",n\r\n"a ""b"", c",1\r\n'))
    write("conv_shape", texts("n128 c64 k64 hw32 r3 s1 p1", "c32 k32 w4096 r2", "n2 c16 k32 d8 h32 w32 r1x3x3 p0x1x1",
                              "n1c4k4g2hw8r2s2x1pl0ph1dil2", "n2 c2 k2 dhw4 r3 p1"))
    write("command_line", texts(
        "conv\n--shape\nn1 c1 k1 hw3 r3\n--pass\nforward,backward_input\n--threads\n2\n--json\n-",
        "conv\n--shapes\nx.csv\n--match\na\n--batch\n1,2\n--dtype\nfloat32,float64\n--device\ncpu\n--seconds\n0.5",
        "ops\n--match\nmatmul\n--letters\nM=64,E=3\n--quick", "ops\n--format\nchannels_last\n--size\nlarge", "step\n--model\nsmall",
        "ask\nbatchnorm-after-unfold\n--quick", "ops\n--cold-cache\n--csv\nx.csv\n--plot\nx.svg\n--baseline\nb.json",
        "list\n--shape\nn1 c1 k1 hw3 r3", "conv\n--precision\nhigh", "--help", "step\n--threads\n99999999999999999999"))
    write("cifar_options", texts(
        "--data\n.\n--model\nresnet20\n--epochs\n15\n--batch-size\n128\n--optimizer\nsgd\n--lr\n0.1\n--momentum\n0.9",
        "--augment\ncrop,flip\n--weight-decay=5e-4\n--label-smoothing\n0.1\n--schedule\none-cycle\n--seed\n18446744073709551615",
        "--threads\n1\n--workers\n0\n--device\ncpu\n--precision\nhigh\n--amp\nbfloat16\n--conv-implementation\nunfold",
        "--output\nruns/a\n--profile\nruns/a/trace.json\n--summary", "--augment\nnone,flip", "--help"))
    write("einsum", texts("ij,jk->ik\nabcdef", "ii->i", "bij,bjk,bkl", "ij->", "...ij,...jk->...ik", "a,b,c->cba", "i j -> j i", "ab,ab"))
    write("names", texts("\0cpu", "\0cuda:1", "\1same", "\1valid", "\2direct", "\2unfold", "\2cudnn:eng1_k2=3", "\3zeros", "\3reflect",
                         "\3replicate", "\3circular", "\4reference", "\4native", "\5relu", "\5leaky_relu", "\5tanh"))


main()
