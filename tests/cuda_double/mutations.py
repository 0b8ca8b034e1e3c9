#!/usr/bin/env python3
"""Shows that the tests on the double of CUDA notice mistakes.

    tests/cuda_double/mutations.py [--work FOLDER] [--build-dir FOLDER] [--only NAME ...] [--list]

Each mutation below is one mistake that can be made in the code for CUDA: a synchronisation or a DeviceGuard
left out, a barrier forgotten, a pointer of the host where one of the device belongs, a workspace too short.
The script makes them one at a time in a working tree of its own, builds pleat_tests with PLEAT_CUDA=DOUBLE,
and runs those of the repository's tests that should notice the mistake, in three ways (RUNS). A mistake is
noticed when a test fails or the double ends the process.

Without --work the tree is a git worktree of HEAD that is removed at the end. A tree that is given must have
no changes of its own; its files are put back. The exit status is 0 when every mutation applies and compiles,
the tests pass without one, and at least 28 of 30 are noticed.
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

# Each run of the tests: work of streams as late as it may be, or some of it early; and with tensors that end where
# their memory does.
RUNS = ({"PLEAT_DOUBLE_SEED": "1"}, {"PLEAT_DOUBLE_SEED": "2"},
        {"PLEAT_DOUBLE_SEED": "3", "PLEAT_CUDA_SEPARATE_BLOCKS": "1"})
NEEDED = 28 / 30


@dataclass
class Mutation:
    name: str
    kind: str
    file: str
    old: str  # exactly once in the file
    new: str
    tests: str  # what Catch2 is told to run


# Tests that many mutations are for.
OTHER_GPU = "cuda: what one GPU computes another does*"
STREAMS = "cuda: what the default stream computes another does"
TENSORS = "[core][cuda]~[graph]~*out-of-memory*"
CONV = "cuda: every convolution implementation agrees with the textbook"
CUDNN = "[cuda]*cuDNN*"
OPTIM = "[optim][cuda]"

MUTATIONS = [
    # core: copies between host and devices
    Mutation("copy_not_waited_for", "synchronisation", "core/tensor/transfer_cuda.cpp",
             "    else if (host)\n      stream.synchronize();\n", "", TENSORS),
    Mutation("pinned_not_recorded", "record_stream", "core/tensor/transfer_cuda.cpp",
             "      record_stream(to.device().is_cpu() ? to : from, stream);",
             "      (void)non_blocking;", TENSORS),
    Mutation("receiver_does_not_wait", "stream order", "core/tensor/transfer_cuda.cpp",
             "  receives.wait(sent);\n", "", TENSORS),
    Mutation("sender_does_not_wait", "stream order", "core/tensor/transfer_cuda.cpp",
             "  sends.wait(ready);\n", "", TENSORS),
    Mutation("fill_on_current_device", "device guard", "core/tensor/transfer_cuda.cpp",
             "  const DeviceGuard guard(to.device());\n  check_cuda(cudaMemsetAsync", "  check_cuda(cudaMemsetAsync",
             OTHER_GPU),
    # core: streams, events, memory
    Mutation("synchronize_on_current_device", "device guard", "core/device/stream_cuda.cpp",
             "  const DeviceGuard guard(device_);\n  check_cuda(cudaStreamSynchronize",
             "  check_cuda(cudaStreamSynchronize", TENSORS),
    Mutation("event_on_current_device", "device guard", "core/device/stream_cuda.cpp",
             "  const DeviceGuard guard(options.device);\n  cudaEvent_t event = nullptr;",
             "  cudaEvent_t event = nullptr;", TENSORS),
    Mutation("stream_does_not_wait", "event order", "core/device/stream_cuda.cpp",
             "check_cuda(cudaStreamWaitEvent(pleat::cuda::native(*this), pleat::cuda::native(event), 0), \"stream.wait\");",
             "(void)event;", TENSORS),
    Mutation("elapsed_of_unfinished_event", "synchronisation", "core/device/stream_cuda.cpp",
             "  end.synchronize();\n", "", "[profile][cuda]"),
    Mutation("memory_of_current_device", "device guard", "core/memory/memory_cuda.cpp",
             "  const DeviceGuard guard(device_);\n  const AllowedInCapture allowed;\n",
             "  const AllowedInCapture allowed;\n",
             TENSORS),
    Mutation("memory_freed_in_wrong_stream", "event order", "core/memory/memory_cuda.cpp",
             "cudaEventRecord(event, static_cast<cudaStream_t>(stream.native))",
             "cudaEventRecord(event, nullptr)", TENSORS),
    Mutation("block_of_any_stream", "stream order", "core/memory/block_cache.cpp",
             "  if (found == free.end() || (*found)->stream != stream) return nullptr;",
             "  if (found == free.end()) return nullptr;", TENSORS),
    Mutation("pending_block_reused", "event order", "core/memory/block_cache.cpp",
             "while (!queue.empty() && memory_.is_done(queue.front().event)) {",
             "while (!queue.empty()) {", TENSORS),
    Mutation("host_is_default_stream", "record_stream", "core/tensor/pinned_memory_cuda.cpp",
             "constexpr StreamId host{-1, nullptr};", "constexpr StreamId host{0, nullptr};", TENSORS),
    # core: handles
    Mutation("blas_without_stream", "stream order", "core/kernels/blas_handle_cuda.cpp",
             "check_blas(cublasSetStream(result->handle, static_cast<cudaStream_t>(stream.native)), \"cublasSetStream\");",
             "", STREAMS),
    Mutation("blas_workspace_too_short", "workspace", "core/kernels/blas_handle_cuda.cpp",
             "result->workspace = allocate(bytes, device);", "result->workspace = allocate(bytes / 2, device);",
             "cuda: cuBLAS works on the current stream"),
    Mutation("dnn_handle_for_all_streams", "stream order", "core/kernels/dnn_handle_cudnn.cpp",
             "const StreamId stream{device.index, current_stream(device).native()};",
             "const StreamId stream{device.index, nullptr};", STREAMS),
    # core: graphs
    Mutation("handles_of_all_threads", "stream order", "core/kernels/handle_pool.h",
             "  thread_local ThreadObject<Own> own;", "  static ThreadObject<Own> own;", "cuda: threads multiply*"),
    Mutation("memory_of_graph_not_held", "record_stream", "core/memory/block_cache.cpp",
             "if (!block->is_segment() || held_.contains(block->stream)) continue;",
             "if (!block->is_segment()) continue;", "[graph]"),
    Mutation("graph_not_waited_for", "event order", "core/graph/cuda_graph_cuda.cpp",
             "    stream.wait(done_);\n    for (auto& [generator", "    for (auto& [generator", "[graph]"),
    # core: launches and blocks of threads
    Mutation("launch_into_default_stream", "launch config", "core/kernels/launch.h",
             "  config.stream = static_cast<cudaStream_t>(cuda::current_stream(device).native());\n", "", STREAMS),
    Mutation("barrier_before_write", "barrier", "core/kernels/block.h",
             "    __syncthreads();  // until all have read what was there before\n", "",
             "device: softmax*"),
    Mutation("barrier_before_read", "barrier", "core/kernels/block.h",
             " all.write(thread(), value);\n    __syncthreads();\n",
             " all.write(thread(), value);\n", "device: reductions of many elements"),
    Mutation("share_without_barrier", "barrier", "core/kernels/block.h",
             "all.write(teams.team_of(thread()), value);\n    __syncthreads();\n",
             "all.write(teams.team_of(thread()), value);\n", "devices: scan,device: softmax*"),
    Mutation("shuffle_across_warps", "shared memory", "core/kernels/block.h",
             "apart < span && apart < detail::warp_threads;", "apart < span && apart <= detail::warp_threads;",
             "device: reductions of many elements"),
    Mutation("host_array_written_late", "host-device pointer", "core/kernels/host_array.h",
             "    if (!values.empty()) std::memcpy(host.raw(), values.data(), values.size_bytes());\n"
             "    bytes_ = ops::to_device(host, device, {.non_blocking = true});\n",
             "    bytes_ = ops::to_device(host, device, {.non_blocking = true});\n"
             "    if (!values.empty()) std::memcpy(host.raw(), values.data(), values.size_bytes());\n",
             "device: images are changed alike"),
    # ops: products and convolution
    Mutation("product_on_current_device", "device guard", "ops/matmul/cublas_gemm.cu",
             "  const cuda::DeviceGuard guard(device);\n", "", OTHER_GPU),
    Mutation("leading_dimension_of_transposed", "size or leading dimension", "ops/matmul/cublas_gemm.cu",
             "const int64_t ldb = leading(p.ldb, p.transpose_b ? p.k : p.n);",
             "const int64_t ldb = leading(p.transpose_b ? p.k : p.n, 1);", CONV),
    Mutation("steps_of_a_batch_swapped", "size or leading dimension", "ops/matmul/cublas_gemm.cu",
             "&alpha, p.b, data_type<T>(), ldb,\n      products.b_step, p.a, data_type<T>(), lda, products.a_step,",
             "&alpha, p.b, data_type<T>(), ldb,\n      products.a_step, p.a, data_type<T>(), lda, products.b_step,",
             "devices: matmul"),
    Mutation("unfold_chunk_too_short", "workspace", "ops/conv/cuda/unfold.cu",
             "most(p, joined).count() * p.groups * p.depth();",
             "most(p, joined).count() * p.depth();", CONV),
    Mutation("partial_sums_too_short", "workspace", "ops/conv/cuda/products.h",
             "return (Split(p, pixels).most + 1) * p.out_channels * p.depth();",
             "return Split(p, pixels).most * p.out_channels * p.depth();", CONV),
    Mutation("planes_of_dy_not_merged", "size or leading dimension", "ops/conv/cuda/unfold.cu",
             "      leading = slice.count();\n", "", CONV),
    Mutation("depthwise_parts_forgotten", "workspace", "ops/conv/cuda/depthwise.cu",
             "scratch_on<Sum<T>>(p.device, parts * dw.numel());",
             "scratch_on<Sum<T>>(p.device, dw.numel());", CONV),
    Mutation("conv_on_current_device", "device guard", "ops/conv/cuda/conv_cudnn.cpp",
             "  const cuda::DeviceGuard guard(device);\n  const cudnnHandle_t handle", "  const cudnnHandle_t handle",
             OTHER_GPU),
    Mutation("conv_workspace_too_short", "workspace", "ops/conv/cuda/conv_cudnn.cpp",
             "empty({plan.workspace}, {", "empty({plan.workspace / 2}, {", CUDNN),
    Mutation("conv_operand_not_aligned", "size or leading dimension", "ops/conv/cuda/conv_cudnn.cpp",
             "return reinterpret_cast<std::uintptr_t>(t.raw()) % 16 == 0 ? t : copy(t); }", "return t; }",
             "cuda: cuDNN takes operands at any address"),
    Mutation("plan_of_another_handle", "stream order", "ops/conv/cuda/cudnn_plan.cpp",
             "if (entry->handle == handle && entry->key == key) {", "if (entry->key == key) {", STREAMS),
    # ops: norms, reductions, softmax
    Mutation("batch_norm_on_current_device", "device guard", "ops/norm/cuda/batch_norm_cudnn.cpp",
             "guard_(problem.device)", "guard_(Device())", OTHER_GPU),
    Mutation("batch_norm_strides_swapped", "size or leading dimension", "ops/norm/cuda/batch_norm_cudnn.cpp",
             "channels * pixels, last ? 1 : pixels,", "channels * pixels, last ? pixels : 1,", "[batch_norm][cuda]"),
    Mutation("gradient_sums_on_host", "host-device pointer", "ops/norm/cuda/batch_norm.cu",
             "const Tensor memory = empty({2 * view.channels}, {.dtype = float64, .device = problem.device});",
             "const Tensor memory = empty({2 * view.channels}, {.dtype = float64});", "[batch_norm][cuda]"),
    Mutation("group_states_too_short", "workspace", "ops/norm/cuda/reduce_groups.h",
             "empty({layout.parts, fine, static_cast<int64_t>(sizeof(State))}",
             "empty({fine, static_cast<int64_t>(sizeof(State))}", "[batch_norm][cuda]"),
    Mutation("reduction_states_too_short", "workspace", "ops/reduce/reduce_kernel.h",
             "empty({parts, plan.outputs, bytes}", "empty({parts, plan.outputs}",
             "device: reductions of many elements"),
    Mutation("scan_states_too_short", "workspace", "ops/reduce/scan_kernel.h",
             "empty({count * number, static_cast<int64_t>(sizeof(State))}",
             "empty({number, static_cast<int64_t>(sizeof(State))}", "device: scans of long lines"),
    Mutation("largest_not_shared", "barrier", "ops/softmax/team_lines.h",
             "      return block.share(number, lines.teams);\n", "      return;\n",
             "device: softmax*"),
    # ops: indices, tables, images, losses
    Mutation("cub_on_current_device", "device guard", "ops/index/cub_call.h",
             "  const cuda::DeviceGuard guard(device);\n", "", OTHER_GPU),
    Mutation("cub_memory_too_short", "workspace", "ops/index/cub_call.h",
             "empty({static_cast<int64_t>(bytes == 0 ? 1 : bytes)}", "empty({1}", "devices: scan,devices: index"),
    Mutation("starts_of_lines_on_host", "host-device pointer", "ops/index/ordered_lines.cu",
             "{.dtype = int64, .device = keys.device()});\n  const auto* const start",
             "{.dtype = int64});\n  const auto* const start", "devices: scan"),
    Mutation("too_few_bits_sorted", "size or leading dimension", "ops/index/index_kernels.cu",
             "return static_cast<int>(std::bit_width(static_cast<uint64_t>(limit < 1 ? 1 : limit)));",
             "return static_cast<int>(std::bit_width(static_cast<uint64_t>(limit < 1 ? 1 : limit))) - 1;",
             "devices: index"),
    Mutation("flag_read_by_host", "host-device pointer", "ops/index/bounds.cu",
             "flags = found.to_vector<int32_t>();",
             "flags(found.data<int32_t>(), found.data<int32_t>() + 2 * n);",
             "devices: index"),
    Mutation("norms_of_doubles_forgotten", "workspace", "ops/update/joint_norm.cu",
             "const Tensor memory = empty({blocks, sizeof(PowerSum)}",
             "const Tensor memory = empty({1, sizeof(PowerSum)}",
             "device: clipping gradients"),
    Mutation("table_starts_not_aligned", "size or leading dimension", "ops/update/table.h",
             "const std::size_t first_at = strides_at + rounded(bytes(strides_));",
             "const std::size_t first_at = strides_at;", OPTIM),
    Mutation("table_stays_on_host", "host-device pointer", "ops/update/table.h",
             "part->send(op, host) : to_device(host, device, {.non_blocking = true});",
             "part->send(op, host) : copy(host);", OPTIM),
    Mutation("map_of_another_stream", "stream order", "ops/spatial/linear_map_tables.h",
             "entry->device == device && entry->stream == stream &&", "entry->device == device &&", STREAMS),
    Mutation("factors_on_host", "host-device pointer", "ops/spatial/linear_map_tables.h",
             "const auto at = [&](std::size_t start) { return memory_->data() + start; };",
             "const auto at = [&](std::size_t start) { return words.data() + start; };", "devices: pool"),
    Mutation("mean_of_an_image_not_shared", "barrier", "ops/image/image.cu",
             "    block.share(sum, all);\n", "", "device: images are changed alike"),
    Mutation("outside_class_read_by_host", "host-device pointer", "ops/loss/kernels.cu",
             "first.item<int64_t>(), view.targets", "*first.data<int64_t>(), view.targets", "devices: loss"),
    Mutation("indices_of_pool_in_wrong_order", "size or leading dimension", "ops/pool/kernels.cpp",
             "steps_as<Index>(gradient),\n" + 63 * " " + "steps_as<Index>(places),",
             "steps_as<Index>(places),\n" + 63 * " " + "steps_as<Index>(gradient),", "devices: pool"),
    # profile, data, nn
    Mutation("end_in_default_stream", "event order", "profile/device_tracer.cpp",
             "pair.end.record(cuda::current_stream(pair.device));",
             "pair.end.record(cuda::Stream::default_of(pair.device));", "[profile][cuda]"),
    Mutation("batches_not_pinned", "synchronisation", "data/loader.cpp",
             "if (t->defined() && t->device().is_cpu()) *t = cuda::pin_memory(*t);", "(void)t;", "[loader][cuda]"),
    Mutation("flag_of_scaler_on_host", "host-device pointer", "nn/optim/grad_scaler.cpp",
             "found.push_back(zeros({1}, {.dtype = int32, .device = device}));",
             "found.push_back(zeros({1}, {.dtype = int32}));", OPTIM),
]


class Tree:
    """A working tree with its build folder."""

    def __init__(self, source, build, jobs):
        self.source = source
        self.build = build
        self.jobs = jobs

    def configure(self):
        if not (self.build / "CMakeCache.txt").exists():
            run(["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                 "-DCMAKE_CXX_FLAGS_DEBUG=-O1", "-DPLEAT_CUDA=DOUBLE", "-DPLEAT_NATIVE=ON",
                 "-DPLEAT_DEVICE_TESTS_ONLY=ON", "-DPLEAT_BUILD_BENCH=OFF", "-DPLEAT_BUILD_EXAMPLES=OFF"])

    def compiles(self):
        done = subprocess.run(["cmake", "--build", self.build, "--target", "pleat_tests", "-j", str(self.jobs)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            print(done.stdout, file=sys.stderr)
        return done.returncode == 0

    def first_complaint(self, tests, limit):
        """What the tests say first, in any run; empty when they pass."""
        for variables in RUNS:
            program = subprocess.Popen([self.build / "tests/pleat_tests", tests], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True, errors="replace",
                                       env=os.environ | variables, cwd=self.build)
            try:
                said, _ = program.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                program.kill()
                program.communicate()
                return f"did not end within {limit} s"
            if "No tests ran" in said:
                sys.exit(f"no test is called {tests}")
            if program.returncode != 0:
                return complaint_in(said, program.returncode)
        return ""


def run(command):
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


def complaint_in(said, status):
    """One line of what a test program said before it failed."""
    found = re.search(r"cuda double: (.*)", said)
    if found:
        return "the double: " + re.sub(r" at 0x[0-9a-f]+", "", found.group(1))
    failed = re.search(r"FAILED:\n((?:.*\n){0,8})", said)
    if failed:
        parts = re.search(r"(?:CHECK|REQUIRE).*", failed.group(1)), re.search(r"message:\s*.*", failed.group(1))
        return "failed: " + ", ".join(" ".join(part.group(0).split()) for part in parts if part)
    return f"ended by signal {-status}" if status < 0 else f"exit status {status}"


def cell(text):
    """Short, and without what Markdown's tables read as their own."""
    text = text if len(text) <= 160 else text[:157] + "..."
    return text.replace("|", "\\|").replace("<", "&lt;")


def try_one(tree, mutation, limit):
    path = tree.source / mutation.file
    before = path.read_text()
    if before.count(mutation.old) != 1:
        return "does not apply", f"its text is in {mutation.file} {before.count(mutation.old)} times"
    path.write_text(before.replace(mutation.old, mutation.new))
    try:
        if not tree.compiles():
            return "does not compile", ""
        said = tree.first_complaint(mutation.tests, limit)
        return ("noticed", said) if said else ("NOT noticed", "")
    finally:
        path.write_text(before)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, help="a working tree to make the mistakes in")
    parser.add_argument("--build-dir", type=pathlib.Path, help="default: build/mutations of the working tree")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these mutations alone")
    parser.add_argument("--list", action="store_true", help="print the mutations and end")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the build")
    parser.add_argument("--limit", type=int, default=900, help="seconds for one run of tests")
    options = parser.parse_args()

    known = {mutation.name: mutation for mutation in MUTATIONS}
    unknown = [name for name in options.only or [] if name not in known]
    if unknown:
        parser.error("there is no mutation " + ", ".join(unknown))
    chosen = [known[name] for name in options.only] if options.only else MUTATIONS
    if options.list:
        for mutation in chosen:
            print(f"{mutation.name:32} {mutation.kind:26} {mutation.file}")
        return 0

    root = pathlib.Path(__file__).resolve().parents[2]
    own = None
    if options.work is None:
        own = pathlib.Path(tempfile.mkdtemp()) / "pleat"
        run(["git", "-C", root, "worktree", "add", "--detach", own])
    source = (own or options.work).resolve()
    try:
        tree = Tree(source, (options.build_dir or source / "build/mutations").resolve(), options.jobs)
        return report(tree, chosen, options.limit)
    finally:
        if own:
            run(["git", "-C", root, "worktree", "remove", "--force", own])
            own.parent.rmdir()


def report(tree, chosen, limit):
    tree.configure()
    if not tree.compiles():
        sys.exit("the tree does not compile without a mutation")
    for tests in sorted({mutation.tests for mutation in chosen}):
        if said := tree.first_complaint(tests, limit):
            sys.exit(f"{tests}: without a mutation, {said}")
    results = []
    for mutation in chosen:
        begin = time.monotonic()
        outcome, how = try_one(tree, mutation, limit)
        results.append((mutation, outcome, how))
        print(f"{mutation.name}: {outcome} ({time.monotonic() - begin:.0f} s) {how}", flush=True)

    print("\n| mutation | kind | file | outcome | how |\n|---|---|---|---|---|")
    for mutation, outcome, how in results:
        print(f"| {mutation.name} | {mutation.kind} | `{mutation.file}` | {outcome} | {cell(how)} |")
    noticed = sum(outcome == "noticed" for _, outcome, _ in results)
    print(f"\n{noticed} of {len(results)} noticed")
    applied = all(outcome in ("noticed", "NOT noticed") for _, outcome, _ in results)
    return 0 if applied and noticed >= NEEDED * len(results) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that files are put back
    sys.exit(main())
