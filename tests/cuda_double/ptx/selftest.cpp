// The interpreter of PTX: threads, memory, what it finds, what it counts. Texts are written by hand, so that
// neither nvcc nor a GPU is needed.
#include "pleat/tests/cuda_double/ptx/selftest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include <cuda_runtime_api.h>

#include "pleat/tests/catch.h"
#include "pleat/tests/cuda_double/double.h"
#include "pleat/tests/cuda_double/ptx/counts.h"
#include "pleat/tests/cuda_double/ptx/launch.h"
#include "pleat/tests/cuda_double/said_by.h"

namespace cuda_double::ptx {

std::string kernel_text(const std::string& body, const std::string& before) {
  return ".version 9.0\n.target sm_90\n.address_size 64\n" + before + R"(
.visible .entry k(
  .param .u64 in,  // read
  .param .u64 out
)
.maxntid 1024, 1, 1
{
  .reg .pred %p<20>;
  .reg .b16 %h<20>;
  .reg .b32 %r<40>;
  .reg .b64 %d<40>;
  mov.u32 %r30, %tid.x;
  mov.u32 %r31, %ctaid.x;
  mov.u32 %r32, %ntid.x;
  mad.lo.s32 %r33, %r31, %r32, %r30;
  ld.param.u64 %d30, [in];
  ld.param.u64 %d31, [out];
  cvta.to.global.u64 %d30, %d30;
  mul.wide.u32 %d32, %r33, 8;
  add.s64 %d33, %d31, %d32;  // this thread's place in out
)" + body +
         "\n  ret;\n}\n";
}

namespace {

uint64_t* on_device(std::size_t n) {
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, std::max<std::size_t>(n, 1) * sizeof(uint64_t)) == cudaSuccess);
  return static_cast<uint64_t*>(memory);
}
cudaLaunchConfig_t config(unsigned blocks, unsigned threads, std::size_t shared) {
  cudaLaunchConfig_t result{};
  result.gridDim = dim3(blocks);
  result.blockDim = dim3(threads);
  result.dynamicSmemBytes = shared;
  return result;
}

/// 0, 1, 2, ...
std::vector<uint64_t> numbers(std::size_t n) {
  std::vector<uint64_t> result(n);
  std::iota(result.begin(), result.end(), uint64_t{0});
  return result;
}
template <class Function>
std::vector<uint64_t> table(std::size_t n, const Function& function) {
  std::vector<uint64_t> result(n);
  for (std::size_t i = 0; i < n; ++i) result[i] = function(i);
  return result;
}

const std::string store_result = "st.global.u64 [%d33], %d0;";
/// %r0 becomes the result.
const std::string store_word = "cvt.u64.u32 %d0, %r0;\n" + store_result;

KernelCount counted(const std::string& body, std::size_t in, unsigned threads) {
  reset_kernel_counts();
  start_counting();
  run_kernel(kernel_text(body), numbers(in), threads, threads);
  REQUIRE(kernel_counts().size() == 1);
  return kernel_counts()[0];
}

}  // namespace

std::vector<uint64_t> run_kernel(const std::string& text, const std::vector<uint64_t>& in, std::size_t out,
                                 unsigned threads, unsigned blocks, std::size_t dynamic_shared) {
  Module module(text);
  uint64_t* const from = on_device(in.size());
  uint64_t* const to = on_device(out);
  cudaMemcpyAsync(from, in.data(), in.size() * sizeof(uint64_t), cudaMemcpyDefault, nullptr);
  std::array<void*, 2> arguments = {const_cast<uint64_t**>(&from), const_cast<uint64_t**>(&to)};
  REQUIRE(launch(module, "k", config(blocks, threads, dynamic_shared), arguments.data()) == cudaSuccess);
  std::vector<uint64_t> result(out);
  cudaMemcpyAsync(result.data(), to, out * sizeof(uint64_t), cudaMemcpyDefault, nullptr);
  cudaFree(from);
  cudaFree(to);
  return result;
}

std::string said_by_kernel(const std::string& text, std::size_t in, unsigned threads) {
  return said_by([&] { run_kernel(text, numbers(in), threads, threads); });
}

TEST_CASE("PTX: threads know who they are") {
  const auto y = run_kernel(kernel_text(R"(
    shl.b32 %r0, %r31, 20;
    shl.b32 %r1, %r30, 8;
    or.b32 %r0, %r0, %r1;
    mov.u32 %r2, %laneid;
    or.b32 %r0, %r0, %r2;)" + store_word),
                            {}, 3 * 70, 70, 3);
  CHECK(y == table(3 * 70, [](uint64_t i) { return (i / 70) << 20 | (i % 70) << 8 | i % 70 % 32; }));
}

TEST_CASE("PTX: lanes part at a branch and meet again") {
  // Each thread adds its number as often as its number says; odd ones leave early.
  const auto y = run_kernel(kernel_text(R"(
    mov.u32 %r0, 0;
    and.b32 %r1, %r30, 1;
    setp.eq.u32 %p1, %r1, 1;
    @%p1 bra $L_end;
    mov.u32 %r2, %r30;
$L_loop:
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra $L_after;
    add.u32 %r0, %r0, %r30;
    sub.u32 %r2, %r2, 1;
    bra.uni $L_loop;
$L_after:
    activemask.b32 %r3;
    setp.ne.u32 %p3, %r3, 0x55555555;
    @%p3 add.u32 %r0, %r0, 1000000;
$L_end:
)" + store_word),
                            {}, 64, 64);
  CHECK(y == table(64, [](uint64_t i) { return i % 2 == 1 ? 0 : i * i; }));
}

TEST_CASE("PTX: a branch by a table") {
  const auto y = run_kernel(kernel_text(R"(
    and.b32 %r1, %r30, 3;
    $L_table: .branchtargets $L_a, $L_b, $L_c, $L_b;
    brx.idx %r1, $L_table;
$L_a: mov.u32 %r0, 10; bra.uni $L_end;
$L_b: mov.u32 %r0, 20; bra.uni $L_end;
$L_c: mov.u32 %r0, 30;
$L_end: )" + store_word),
                            {}, 64, 64);
  CHECK(y == table(64, [](uint64_t i) { return std::array<uint64_t, 4>{10, 20, 30, 20}[i % 4]; }));
}

TEST_CASE("PTX: a function is part of its caller, with its own registers") {
  const std::string function = R"(
.func (.param .b64 value) twice_and(.param .b64 x, .param .b64 y) {
  .reg .b64 %d<4>;
  .reg .pred %p<2>;
  ld.param.u64 %d1, [x];
  ld.param.u64 %d2, [y];
  setp.eq.u64 %p1, %d1, 3;
  @%p1 bra $L_three;
  add.u64 %d1, %d1, %d1;
  add.u64 %d3, %d1, %d2;
  st.param.b64 [value], %d3;
  ret;
$L_three:
  st.param.b64 [value], 1000;
  ret;
})";
  const auto y = run_kernel(kernel_text(R"(
    cvt.u64.u32 %d1, %r30;
    {
    .param .b64 a;
    st.param.b64 [a+0], %d1;
    .param .b64 b;
    st.param.b64 [b+0], 7;
    .param .b64 result;
    call.uni (result),
    twice_and,
    (
    a,
    b
    );
    ld.param.b64 %d0, [result+0];
    }
    add.u64 %d0, %d0, %d1;)" + store_result,
                                        function),
                            {}, 32, 32);
  CHECK(y == table(32, [](uint64_t i) { return i == 3 ? 1003 : 3 * i + 7; }));
}

TEST_CASE("PTX: barriers, and shared memory, static and dynamic") {
  const std::string shared = ".shared .align 8 .b8 own[1024];\n.extern .shared .align 8 .b8 given[];\n";
  const std::string reverse = R"(
    mov.u32 %r1, own;
    mov.u32 %r2, given;
    shl.b32 %r3, %r30, 3;
    add.u32 %r4, %r1, %r3;
    add.u32 %r5, %r2, %r3;
    cvt.u64.u32 %d1, %r30;
    st.shared.u64 [%r4], %d1;
    st.shared.u64 [%r5], %d1;
    bar.sync 0;
    xor.b32 %r3, %r3, 504;
    add.u32 %r4, %r1, %r3;
    add.u32 %r5, %r2, %r3;
    ld.shared.u64 %d2, [%r4];
    ld.shared.u64 %d3, [%r5];
    mad.lo.u64 %d0, %d2, 1000, %d3;
)";
  Module module(kernel_text(reverse + store_result, shared));
  CHECK(module.program("k")->static_shared == 1024);
  CHECK(run_kernel(kernel_text(reverse + store_result, shared), {}, 64, 64, 1, 512) ==
        table(64, [](uint64_t i) { return 1001 * (63 - i); }));
}

TEST_CASE("PTX: a barrier that puts predicates together") {
  for (const std::string how : {"and", "or"}) {
    const auto y = run_kernel(kernel_text("setp.lt.u32 %p1, %r30, 40;\nbar.red." + how +
                                          ".pred %p2, 0, %p1;\nselp.u32 %r0, 1, 0, %p2;\n" + store_word),
                              {}, 64, 64);
    CHECK(y == table(64, [&](uint64_t) { return how == "or" ? 1 : 0; }));
  }
  const auto y = run_kernel(
      kernel_text("setp.lt.u32 %p1, %r30, 40;\nbar.red.popc.u32 %r0, 0, !%p1;\n" + store_word), {}, 64, 64);
  CHECK(y == table(64, [](uint64_t) { return 24; }));
}

TEST_CASE("PTX: shuffles") {
  const auto shuffled = [](const std::string& text) {
    return run_kernel(
        kernel_text("add.u32 %r1, %r30, 100;\nshfl.sync." + text +
                    ", -1;\nselp.u32 %r2, 1000, 0, %p1;\nadd.u32 %r0, %r0, %r2;\n" + store_word),
        {}, 32, 32);
  };
  CHECK(shuffled("down.b32 %r0|%p1, %r1, 3, 31") ==
        table(32, [](uint64_t i) { return 100 + (i + 3 < 32 ? i + 1003 : i); }));
  CHECK(shuffled("up.b32 %r0|%p1, %r1, 3, 0") ==
        table(32, [](uint64_t i) { return 100 + (i >= 3 ? i - 3 + 1000 : i); }));
  CHECK(shuffled("bfly.b32 %r0|%p1, %r1, 5, 31") == table(32, [](uint64_t i) { return 1100 + (i ^ 5); }));
  // In parts of 8 lanes: those above 8 belong to the next.
  CHECK(shuffled("idx.b32 %r0|%p1, %r1, 2, 0x181f") ==
        table(32, [](uint64_t i) { return 1100 + i / 8 * 8 + 2; }));
  CHECK(shuffled("down.b32 %r0|%p1, %r1, 3, 0x181f") ==
        table(32, [](uint64_t i) { return 100 + (i % 8 < 5 ? i + 1003 : i); }));
}

TEST_CASE("PTX: a shuffle waits for lanes that come later") {
  const auto y = run_kernel(kernel_text(R"(
    setp.lt.u32 %p1, %r30, 16;
    mov.u32 %r1, 5;
    @%p1 bra $L_meet;
    mov.u32 %r1, 6;
$L_meet:
    shfl.sync.bfly.b32 %r0, %r1, 16, 31, -1;
)" + store_word),
                            {}, 32, 32);
  CHECK(y == table(32, [](uint64_t i) { return i < 16 ? 6 : 5; }));
}

TEST_CASE("PTX: votes, matches and sums of a warp") {
  const auto voted = [](const std::string& text) {
    return run_kernel(kernel_text("setp.lt.u32 %p1, %r30, 12;\nmov.u32 %r0, 0;\nand.b32 %r1, %r30, 7;\n" +
                                  text + "\n" + store_word),
                      {}, 32, 32);
  };
  CHECK(voted("vote.sync.ballot.b32 %r0, %p1, -1;") == table(32, [](uint64_t) { return 0xfff; }));
  CHECK(voted("vote.sync.ballot.b32 %r0, !%p1, -1;") == table(32, [](uint64_t) { return 0xfffff000; }));
  CHECK(voted("vote.sync.any.pred %p2, %p1, -1;\n@%p2 mov.u32 %r0, 1;") ==
        table(32, [](uint64_t) { return 1; }));
  CHECK(voted("vote.sync.all.pred %p2, %p1, -1;\n@%p2 mov.u32 %r0, 1;") ==
        table(32, [](uint64_t) { return 0; }));
  CHECK(voted("match.any.sync.b32 %r0, %r1, -1;") ==
        table(32, [](uint64_t i) { return uint64_t{0x01010101} << i % 8; }));
  CHECK(voted("redux.sync.add.s32 %r0, %r30, -1;") == table(32, [](uint64_t) { return 496; }));
}

TEST_CASE("PTX: atomic operations") {
  const auto y = run_kernel(kernel_text(R"(
    mov.u64 %d20, 0;
    setp.eq.u32 %p1, %r30, 0;
    @%p1 st.global.v2.u64 [%d31], {%d20, %d20};
    @%p1 st.global.v2.u64 [%d31+16], {%d20, %d20};
    bar.sync 0;
    atom.global.add.u32 %r1, [%d31], 3;
    atom.global.inc.u32 %r2, [%d31+8], 9;
    red.global.add.f32 [%d31+16], 0f3F000000;
    red.global.max.s32 [%d31+24], %r30;
    atom.global.cas.b32 %r3, [%d31+28], 0, 7;)"),
                            {}, 8, 64);
  CHECK(y[0] == 3 * 64);
  CHECK(y[1] == 64 % 10);
  CHECK(y[2] == std::bit_cast<uint32_t>(32.0f));
  CHECK(y[3] == (uint64_t{7} << 32 | 63));
}

TEST_CASE("PTX: loads and stores of all sizes, in a row and apart") {
  const std::vector<uint64_t> in = table(256, [](uint64_t i) { return i * 0x0123456789abcdef; });
  const auto bytes = reinterpret_cast<const unsigned char*>(in.data());
  const auto loaded = [&](const std::string& text, const std::string& place) {
    return run_kernel(kernel_text("mul.lo.u32 %r1, %r30, " + place +
                                  ";\ncvt.u64.u32 %d1, %r1;\nadd.u64 %d2, %d30, %d1;\nmov.u64 %d0, 0;\n" +
                                  text + "\n" + store_result),
                      in, 64, 64);
  };
  for (const uint64_t step : {1, 3, 5})
    CHECK(loaded("ld.global.u8 %h1, [%d2];\ncvt.u64.u16 %d0, %h1;", std::to_string(step)) ==
          table(64, [&](uint64_t i) { return bytes[i * step]; }));
  CHECK(loaded("ld.global.nc.s8 %r2, [%d2+1];\ncvt.u64.u32 %d0, %r2;", "2") == table(64, [&](uint64_t i) {
          return static_cast<uint32_t>(static_cast<signed char>(bytes[2 * i + 1]));
        }));
  CHECK(loaded("ld.u64 %d0, [%d2];", "8") == table(64, [&](uint64_t i) { return in[i]; }));
  CHECK(loaded("ld.global.v2.u32 {%r3, %r4}, [%d2];\nmov.b64 %d0, {%r4, %r3};", "8") ==
        table(64, [&](uint64_t i) { return in[i] << 32 | in[i] >> 32; }));
  CHECK(loaded("ld.global.v4.b16 {%h1, _, %h3, %h4}, [%d2];\nmov.b64 %d0, {%h4, %h3, %h3, %h1};", "24") ==
        table(64, [&](uint64_t i) {
          return (in[3 * i] >> 48) | (in[3 * i] >> 32 & 0xffff) * 0x100010000 | in[3 * i] << 48;
        }));
  CHECK(loaded("ld.global.u64 %d0, [%d30+16];", "8") == table(64, [&](uint64_t) { return in[2]; }));
}

TEST_CASE("PTX: local memory, constants and variables") {
  const auto y = run_kernel(
      kernel_text(
          R"(
    .local .align 8 .b8 depot[64];
    .reg .b64 %SP;
    mov.u64 %SP, depot;
    cvta.local.u64 %d1, %SP;
    and.b32 %r1, %r30, 7;
    mul.wide.u32 %d2, %r1, 8;
    add.u64 %d3, %d1, %d2;
    mul.wide.u32 %d4, %r30, %r30;
    st.u64 [%d3], %d4;
    add.u64 %d5, %SP, %d2;
    ld.local.u64 %d6, [%d5];
    ld.const.u32 %r2, [factors+4];
    ld.global.u16 %h1, [offsets+2];
    cvt.u64.u32 %d7, %r2;
    cvt.u64.u16 %d8, %h1;
    mad.lo.u64 %d0, %d6, %d7, %d8;
)" + store_result,
          ".const .align 4 .u32 factors[3] = {2, 3, 4};\n.global .align 2 .b8 offsets[4] = {1, 0, 5};\n"),
      {}, 64, 64);
  CHECK(y == table(64, [](uint64_t i) { return 3 * i * i + 5; }));
}

namespace {
/// What is said of a kernel that stores %r0 in the end.
std::string said(const std::string& body, const std::string& before = "", unsigned threads = 64) {
  return said_by_kernel(kernel_text("mov.u32 %r0, 0;\n" + body + "\n" + store_word, before), 64, threads);
}
const std::string array = ".shared .align 8 .b8 own[512];\n";
/// %r1: this thread's place; %r2: its neighbour's in another warp; %r3: in its own.
const std::string places =
    "mov.u32 %r9, own;\nshl.b32 %r1, %r30, 2;\nadd.u32 %r1, %r1, %r9;\nxor.b32 %r2, %r1, 128;\nxor.b32 %r3, "
    "%r1, 4;\n";
}  // namespace

TEST_CASE("PTX: what is wrong ends the process and says so") {
  using Catch::Matchers::Contains;
  CHECK(said("") == "");
  CHECK_THAT(said("frobnicate.u32 %r0, %r1;"),
             Contains("k: PTX that cannot be executed: frobnicate.u32 %r0, %r1"));
  CHECK_THAT(said("add.s32.strangely %r0, %r1, %r2;"), Contains("add.s32.strangely"));
  CHECK_THAT(said("ld.global.u32 %r0, [%d30+2];"),
             Contains("misaligned address") && Contains("(ld.global.u32 %r0, [%d30+2])"));
  CHECK_THAT(said("ld.global.u64 %d1, [%d30+512];"), Contains("belongs to no block"));
  CHECK_THAT(said("mov.u64 %d1, 4096;\nld.global.u64 %d2, [%d1];"),
             Contains("touched memory of the host at 0x1000"));
  CHECK_THAT(said("trap;"), Contains("trap"));
}

TEST_CASE("PTX: what is wrong between threads ends the process") {
  using Catch::Matchers::Contains;
  CHECK(said(places + "st.shared.u32 [%r1], %r30;\nbar.sync 0;\nld.shared.u32 %r0, [%r2];", array) == "");
  CHECK(said(places + "st.shared.u32 [%r1], %r30;\nbar.warp.sync -1;\nld.shared.u32 %r0, [%r3];", array) ==
        "");
  CHECK_THAT(said(places + "ld.shared.u32 %r0, [%r2];", array),
             Contains("reads shared memory that nobody has written"));
  CHECK_THAT(said(places + "st.shared.u32 [%r1], %r30;\nld.shared.u32 %r0, [%r3];", array),
             Contains("reads shared memory that another thread wrote"));
  CHECK_THAT(said(places + "st.shared.u32 [%r1], %r30;\nbar.sync 0;\nld.shared.u32 %r0, "
                           "[%r2];\nst.shared.u32 [%r1], %r30;",
                  array),
             Contains("shared memory that another thread"));
  CHECK_THAT(said(places + "st.shared.u32 [%r9], %r30;", array),
             Contains("writes shared memory that another thread wrote"));
  CHECK_THAT(said(places + "st.shared.u32 [%r1+500], %r30;", array),
             Contains("past the end of shared memory"));
  CHECK_THAT(said("setp.lt.u32 %p1, %r30, 32;\n@%p1 bra $L_end;\nbar.sync 0;\n$L_end:"),
             Contains("32 threads of a block ended while 32 wait at __syncthreads"));
  CHECK_THAT(said("setp.lt.u32 %p1, %r30, 7;\n@%p1 bra $L_end;\nbar.sync 0;\n$L_end:"),
             Contains("ended while"));
  CHECK_THAT(
      said(
          "setp.lt.u32 %p1, %r30, 32;\n@%p1 bra $L_b;\nbar.sync 0;\nbra $L_end;\n$L_b: bar.sync 1;\n$L_end:"),
      Contains("wait at different __syncthreads"));
  CHECK_THAT(
      said("setp.lt.u32 %p1, %r30, 7;\n@%p1 bra $L_b;\nbar.sync 0;\nbra $L_end;\n$L_b: bar.sync 0;\n$L_end:"),
      Contains("wait at different __syncthreads"));
  CHECK_THAT(said("shfl.sync.idx.b32 %r0, %r30, 2, 31, 3;"), Contains("a shuffle whose mask lacks it"));
  CHECK_THAT(said("setp.lt.u32 %p1, %r30, 7;\n@%p1 ret;\nshfl.sync.idx.b32 %r0, %r30, 2, 31, -1;"),
             Contains("ended while others wait for them at a shuffle"));
  CHECK_THAT(said("setp.lt.u32 %p1, %r30, 7;\n@%p1 bra $L_b;\nshfl.sync.idx.b32 %r0, %r30, 2, 31, -1;\nbra "
                  "$L_end;\n$L_b: bar.sync 0;\n$L_end:"),
             Contains("some at __syncthreads, others at a shuffle"));
}

TEST_CASE("PTX: a failed assertion says what failed") {
  const std::string texts =
      ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 "
      "e);\n"
      ".global .align 1 .b8 message[6] = {110, 32, 62, 32, 51};\n.global .align 1 .b8 file[5] = {116, 46, "
      "99, 117};\n";
  const std::string call = R"(
    setp.ne.u32 %p1, %r30, 33;
    @%p1 bra $L_fine;
    mov.u64 %d1, message;
    mov.u64 %d2, file;
    {
    .param .b64 p0; st.param.b64 [p0+0], %d1;
    .param .b64 p1; st.param.b64 [p1+0], %d2;
    .param .b32 p2; st.param.b32 [p2+0], 17;
    .param .b64 p3; st.param.b64 [p3+0], %d1;
    .param .b64 p4; st.param.b64 [p4+0], 1;
    call.uni __assertfail, (p0, p1, p2, p3, p4);
    }
$L_fine:)";
  CHECK_THAT(said(call, texts), Catch::Matchers::Contains("assertion failed: n > 3, t.cu:17"));
  CHECK(said(call, texts, 32) == "");
}

TEST_CASE("PTX: what an access to global memory costs is counted") {
  const auto loads = [](const std::string& step) {
    return counted(
        "mul.wide.u32 %d1, %r30, " + step + ";\nadd.u64 %d2, %d30, %d1;\nld.global.u32 %r0, [%d2];", 2048,
        64);
  };
  CHECK(loads("4").sectors == 8);
  CHECK(loads("4").fewest_sectors == 8);
  CHECK(loads("8").sectors == 16);
  CHECK(loads("8").fewest_sectors == 8);
  CHECK(loads("256").sectors == 64);
  CHECK(loads("0").sectors == 2);
  CHECK(loads("0").fewest_sectors == 2);
}

TEST_CASE("PTX: conflicts of shared memory's banks are counted") {
  const auto stores = [](const std::string& step, const std::string& type, const std::string& value) {
    return counted(".shared .align 16 .b8 own[16384];\nmov.u32 %r1, own;\nmad.lo.u32 %r1, %r30, " + step +
                       ", %r1;\nst.shared." + type + " [%r1], " + value + ";",
                   1, 32);
  };
  CHECK(stores("4", "u32", "%r30").conflicts == 0);
  CHECK(stores("8", "u32", "%r30").conflicts == 1);
  CHECK(stores("128", "u32", "%r30").conflicts == 31);
  CHECK(stores("132", "u32", "%r30").conflicts == 0);
  CHECK(stores("8", "u64", "%d32").conflicts == 0);
  CHECK(stores("8", "u64", "%d32").shared_accesses == 2);
  CHECK(stores("16", "u64", "%d32").conflicts == 2);
  CHECK(stores("16", "v2.u64", "{%d32, %d32}").conflicts == 0);
}

TEST_CASE("PTX: instructions and divergent branches are counted") {
  const KernelCount count = counted(
      "setp.lt.u32 %p1, %r30, 8;\n@%p1 bra $L_end;\nadd.f32 %r1, %r2, %r3;\ncvt.rn.f32.s32 %r1, "
      "%r2;\n$L_end:",
      1, 64);
  const auto threads = [&](Kind kind) { return count.thread_instructions[static_cast<std::size_t>(kind)]; };
  CHECK(count.launches == 1);
  CHECK(count.threads == 64);
  CHECK(count.divergences == 1);
  CHECK(threads(Kind::real) == 56);
  CHECK(threads(Kind::conversion) == 56);
  CHECK(threads(Kind::control) == 8 + 64);  // of the guarded branch those that take it
  CHECK(count.warp_instructions[static_cast<std::size_t>(Kind::real)] == 2);
  CHECK(table_of({count}).find("  k\n") != std::string::npos);
}

TEST_CASE("PTX: moves between registers of different types are not counted") {
  const auto moves = [](const std::string& body) {
    return counted(body, 1, 32).warp_instructions[static_cast<std::size_t>(Kind::move)];
  };
  const uint64_t others = moves("");
  CHECK(moves("mov.b32 %r1, %r2;") == others + 1);
  CHECK(moves(".reg .b32 %i<2>;\nmov.b32 %r1, %i1;\nmov.b32 %i1, %r2;") == others);
}

TEST_CASE("PTX: a launch that a GPU would refuse is refused") {
  Module module(kernel_text("st.shared.u32 [own], 1;", ".shared .align 4 .b8 own[40960];\n"));
  uint64_t* const memory = on_device(1);
  std::array<void*, 2> arguments = {const_cast<uint64_t**>(&memory), const_cast<uint64_t**>(&memory)};
  CHECK(launch(module, "k", config(1, 1, 8192), arguments.data()) == cudaSuccess);
  CHECK(launch(module, "k", config(1, 1, 8193), arguments.data()) == cudaErrorInvalidValue);
  cudaDeviceSynchronize();
  cudaFree(memory);
}

}  // namespace cuda_double::ptx
