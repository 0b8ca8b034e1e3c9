#!/usr/bin/env python3
"""Which kernels of a built library use local memory, or so many registers that too few threads run at once:
python3 local_memory.py LIBRARY EXCEPTIONS|--registers

An array of a thread's own that is not in registers, and registers that were spilled, lie in a kernel's frame in
local memory. Fails when a kernel for compute capability 9.0 has a frame that EXCEPTIONS does not allow, or more than
128 registers, which leave a multiprocessor one block of 256 threads. Memory of 3.35 TB/s that answers after 600 ns is
busy while each of 132 multiprocessors has asked for 15 KB: two blocks have where a thread loads two vectors of 16
bytes before it waits, as kernels of so many registers do. Shared memory, 48 KB a block at most, leaves room for four.
Lines of EXCEPTIONS read
"BYTES PATTERN  # reason" or "BYTES/REGISTERS PATTERN  # reason": kernels whose name has the regular expression PATTERN
in it may have frames of up to BYTES, and up to REGISTERS registers.

With --registers it lists all kernels instead: registers of a thread, how many blocks of 256 threads a multiprocessor
has registers for (of 65,536, which warps take by 256), and the frame.

Reads the machine code as nvcc embeds it, so that it needs no other tool: `cuobjdump --dump-resource-usage` would
say the same under STACK. Exit status 77: skipped.
"""
import ctypes
import ctypes.util
import re
import struct
import subprocess
import sys

most_registers = 128  # of 65,536: two blocks of 256 threads on a multiprocessor


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def unpack(kind, packed, size):
    """What a library for compression makes of `packed`: `size` bytes."""
    name = {0x2000: "lz4", 0x8000: "zstd"}[kind]
    path = ctypes.util.find_library(name)
    if path is None:
        skip(f"no lib{name}, with which nvcc packed the kernels")
    library = ctypes.CDLL(path)
    plain = ctypes.create_string_buffer(size)
    if name == "zstd":
        library.ZSTD_decompress.restype = ctypes.c_size_t
        arguments = plain, ctypes.c_size_t(size), packed, ctypes.c_size_t(len(packed))
        count = library.ZSTD_decompress(*arguments)
    else:
        count = library.LZ4_decompress_safe(packed, plain, len(packed), size)
    if count != size:
        sys.exit(f"lib{name} cannot unpack {len(packed)} bytes of machine code into {size}")
    return plain.raw


def cubins(data):
    """The machine code for compute capability 9.0 in a file. nvcc puts it into containers, each a header and entries."""
    magic = struct.pack("<IHH", 0xBA55ED50, 1, 16)
    at = data.find(magic)
    while at >= 0:
        (length,) = struct.unpack_from("<Q", data, at + 8)
        entry, end = at + 16, at + 16 + length
        while entry < end:
            kind, _, header, stored, packed = struct.unpack_from("<HHIQI", data, entry)
            (architecture,) = struct.unpack_from("<I", data, entry + 28)
            flags, size = struct.unpack_from("<Q8xQ", data, entry + 40)
            body = data[entry + header : entry + header + stored]
            compression = flags & 0xA000
            if kind == 2 and architecture == 90:  # kind 1 is PTX
                yield unpack(compression, body[:packed], size) if compression else body
            entry += header + stored
        at = data.find(magic, end)


def frames(cubin):
    """(kernel's name, bytes of its frame, registers), from the notes in the ELF section .nv.info."""
    (table,) = struct.unpack_from("<Q", cubin, 40)
    entry_size, count, names = struct.unpack_from("<HHH", cubin, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + i * entry_size) for i in range(count)]
    text = lambda at: cubin[at : cubin.index(b"\0", at)].decode()
    named = {text(sections[names][4] + s[0]): s for s in sections}
    symbols, strings = named[".symtab"], named[".strtab"]
    at, end = named[".nv.info"][4], named[".nv.info"][4] + named[".nv.info"][5]
    notes = {0x11: {}, 0x2F: {}}  # sizes of frames, numbers of registers
    while at < end:
        form, what, size = struct.unpack_from("<BBH", cubin, at)
        at += 4
        if form != 4:  # a number instead of the size of what follows
            continue
        if what in notes:
            symbol, number = struct.unpack_from("<II", cubin, at)
            (name,) = struct.unpack_from("<I", cubin, symbols[4] + symbol * symbols[9])
            notes[what][text(strings[4] + name)] = number
        at += size
    for name, frame in notes[0x11].items():
        if not name.startswith("$"):  # a division or the like, which shares its kernel's frame
            yield name, frame, notes[0x2F].get(name, 0)


def readable(names):
    """Names as they are in the source, where there is a tool for that."""
    try:
        run = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
        return run.stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        skip("no c++filt")


def exceptions(path):
    result = []
    for line in open(path, encoding="utf-8"):
        if line.startswith("#") or not line.strip():
            continue
        match = re.fullmatch(r"(\d+)(?:/(\d+))? (\S.*?)  # (\S.*)\n", line)
        if match is None:
            sys.exit(f'{path}: must read "BYTES[/REGISTERS] PATTERN  # reason", got: {line}')
        result.append((int(match[1]), int(match[2] or most_registers), re.compile(match[3])))
    return result


def main(library, list_of_exceptions):
    with open(library, "rb") as file:
        found = [entry for cubin in cubins(file.read()) for entry in frames(cubin)]
    if not found:
        skip(f"no kernels for compute capability 9.0 in {library}")
    if list_of_exceptions == "--registers":
        for name, (_, frame, registers) in zip(readable([name for name, _, _ in found]), found):
            blocks = 65536 // (-(-max(registers, 1) * 32 // 256) * 256) // 8
            print(f"{registers:4} {min(blocks, 8):2} {frame:5}  {name}")
        return
    allowed = exceptions(list_of_exceptions)
    used = set()
    breaches = []
    costly = [entry for entry in found if entry[1] > 0 or entry[2] > most_registers]
    for name, (_, frame, registers) in zip(readable([entry[0] for entry in costly]), costly):
        fitting = [i for i, (_, _, pattern) in enumerate(allowed) if pattern.search(name)]
        used.update(fitting)
        if not any(frame <= allowed[i][0] and registers <= allowed[i][1] for i in fitting):
            breaches.append(f"{frame} bytes of local memory, {registers} registers: {name}")
    for i, (_, _, pattern) in enumerate(allowed):
        if i not in used:  # with another version of nvcc some may be needed and others not
            print(f'no kernel needs the exception "{pattern.pattern}"')
    for breach in breaches:
        print(breach)
    print(f"{len(found)} kernels, {len(costly)} with local memory or many registers, {len(breaches)} not excepted")
    sys.exit(1 if breaches else 0)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
