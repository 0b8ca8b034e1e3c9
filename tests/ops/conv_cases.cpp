#include "pleat/tests/ops/conv_cases.h"

#include <algorithm>
#include <array>
#include <random>

#include "pleat/core/tensor/shape.h"

namespace pleat::test {
namespace {

/// Cases that a sweep would hardly meet.
std::vector<ConvCase> special_cases() {
  return {
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
      {{0, 3, 8, 8}, {4, 3, 3, 3}, {.padding = 1}},  // empty batch
      {{2, 3, 5, 7}, {4, 3, 3, 3}, {.padding = "same"}},
      {{2, 3, 6, 7}, {4, 3, 2, 4}, {.padding = "same"}},  // even kernels
      {{2, 3, 9, 8}, {4, 3, 3, 3}, {.padding = "same", .dilation = 2}},
      {{2, 3, 9, 8}, {4, 3, 3, 3}, {.padding = "valid"}},
      {{2, 3, 5, 6}, {4, 3, 3, 3}, {.padding = {{0, 1}, {2, 0}}}},  // asymmetric
      {{2, 3, 5, 6}, {4, 3, 3, 3}, {.stride = 2, .padding = {{0, 2}, {3, 1}}}},
      {{2, 4, 7, 7}, {6, 4, 1, 1}, {}},                                         // matrix product
      {{2, 4, 7, 7}, {6, 4, 1, 1}, {.stride = 2}},                              // rows gathered
      {{2, 4, 7, 7}, {6, 4, 1, 1}, {.padding = 2}},                             // pads with zeros
      {{2, 4, 8, 8}, {6, 4, 4, 4}, {.stride = 4}},                              // patches
      {{3, 4, 5, 6}, {6, 4, 5, 6}, {}},                                         // a linear layer
      {{3, 4, 3, 3}, {6, 4, 3, 3}, {.padding = 4}},                             // padding beyond the kernel
      {{2, 3, 9, 9}, {4, 3, 2, 2}, {.stride = 3}},                              // stride above kernel
      {{2, 6, 9, 9}, {6, 1, 3, 3}, {.padding = 1, .groups = 6}},                // depthwise
      {{2, 4, 9, 9}, {12, 1, 3, 3}, {.stride = 2, .padding = 1, .groups = 4}},  // with a multiplier
      {{1, 2, 4, 500}, {3, 2, 1, 3}, {.padding = {0, 1}}},
      {{1, 3, 70, 70}, {8, 3, 3, 3}, {.padding = 1}},              // several tiles an image
      {{40, 8, 6, 6}, {8, 8, 3, 3}, {.padding = 1}},               // several images a tile
      {{2, 3, 6, 5, 4}, {4, 3, 1, 3, 3}, {.padding = {0, 1, 1}}},  // is a conv2d
      {{2, 3, 6, 5, 4}, {4, 3, 3, 1, 1}, {.padding = {1, 0, 0}}},  // h and w merge
      {{2, 3, 6, 5, 4}, {4, 3, 1, 1, 3}, {.padding = {0, 0, 1}}},  // d and h join the batch
      {{2, 3, 6, 5, 4}, {4, 3, 3, 1, 3}, {.padding = {1, 0, 1}}},
      {{2, 3, 6, 5, 4}, {4, 3, 1, 1, 1}, {}},
      {{2, 3, 6, 5, 4}, {4, 3, 6, 5, 4}, {}},
      {{2, 3, 31}, {4, 3, 5}, {.padding = 4, .dilation = 2}},
      {{3, 4, 13, 11}, {6, 4, 3, 3}, {.padding = 1}},  // images large enough for products of their own
      {{3, 4, 13, 12}, {6, 4, 3, 2}, {.stride = {1, 1}, .padding = {{1, 1}, {0, 1}}}},
      {{3, 4, 25, 25}, {6, 4, 3, 3}, {.stride = 2, .padding = 1}},
      {{3, 4, 13, 11}, {6, 2, 3, 3}, {.padding = 1, .groups = 2}},
      {{3, 4, 12, 12}, {6, 2, 1, 1}, {.groups = 2}},
      {{2, 8, 3, 12, 12}, {4, 8, 1, 3, 3}, {.padding = {0, 1, 1}}},
      {{2, 8, 12}, {5, 8, 3}, {.stride = 3}},  // windows that do not meet
      {{1, 8, 14}, {5, 8, 3}, {.stride = 4}},  // nor fill the line
      {{2, 4, 9}, {4, 2, 1}, {.stride = 3, .groups = 2}},
      {{2, 3, 12, 12}, {4, 3, 4, 4}, {.stride = 6, .dilation = 2}},  // stride and dilation share a factor
      {{2, 3, 12, 12}, {4, 3, 3, 4}, {.stride = {4, 3}, .padding = 3, .dilation = {3, 2}}},
      {{2, 16, 9, 9}, {16, 1, 3, 3}, {.padding = 1, .groups = 16}},  // depthwise
      {{2, 6, 9, 9}, {18, 1, 5, 3}, {.stride = {2, 1}, .padding = {2, 1}, .groups = 6}},
      {{2, 8, 20}, {8, 1, 7}, {.padding = 6, .dilation = 2, .groups = 8}},
      {{1, 4, 5, 6, 5}, {4, 1, 3, 3, 3}, {.stride = {1, 2, 1}, .padding = 1, .groups = 4}},
      {{2, 4, 5, 6, 5}, {8, 1, 1, 3, 3}, {.padding = {0, 1, 1}, .groups = 4}},
      {{0, 4, 5, 6}, {4, 1, 3, 3}, {.padding = 1, .groups = 4}},  // depthwise of nothing
      {{2, 3, 1}, {4, 3, 1}, {}},
      {{2, 40, 9, 9}, {3, 40, 1, 1}, {}},                         // few filters, channels beyond a tile
      {{2, 150, 5, 5}, {140, 150, 1, 1}, {}},                     // several blocks of both
      {{1, 70, 31, 33}, {6, 70, 1, 1}, {.stride = {2, 3}}},       // pixels that no window reads
      {{2, 33, 11, 12}, {36, 33, 3, 2}, {.padding = 1}},          // tiles that end in one channel
      {{3, 3, 30, 31}, {40, 3, 3, 3}, {.padding = 1}},            // few channels, several shares of pixels
      {{1, 20, 30, 70}, {17, 20, 3, 3}, {.stride = 2}},           // lines cut into stretches
      {{1, 33, 3000}, {7, 33, 2}, {}},                            // one long line
      {{2, 4, 2000}, {33, 4, 3}, {.padding = 3, .dilation = 3}},  // the same, dilated, padded
      {{1, 260, 4, 5}, {70, 260, 3, 3}, {.padding = 1}},    // channels summed in blocks; panels in groups
      {{2, 520, 6, 6}, {36, 520, 1, 1}, {.stride = 2}},     // pixels moved apart, the last panel not full
      {{3, 20, 7, 9}, {1, 20, 3, 2}, {.padding = {1, 2}}},  // so few channels that vectors lie along the
      {{2, 17, 9, 70}, {8, 17, 1, 3}, {.stride = {1, 2}}},  // other ones: 1, 8 and 5
      {{2, 33, 9}, {5, 33, 3}, {.stride = 2, .padding = 1}},
      // Winograd's: tiles that end beyond the image, channels that are no multiple of a vector or more than a
      // task's, padding of all kinds, one dimension, several blocks of tiles.
      {{2, 16, 8, 8}, {16, 16, 3, 3}, {.padding = 1}},
      {{2, 16, 7, 5}, {17, 16, 3, 3}, {.padding = 1}},
      {{1, 37, 9, 10}, {53, 37, 3, 3}, {}},
      {{3, 18, 3, 3}, {31, 18, 3, 3}, {.padding = {{2, 0}, {1, 4}}}},
      {{1, 145, 4, 6}, {33, 145, 3, 3}, {.padding = 1}},
      {{1, 16, 4, 3}, {150, 16, 3, 3}, {.padding = 1}},
      {{3, 16, 40, 36}, {20, 16, 3, 3}, {.padding = 1}},
      {{2, 17, 300}, {24, 17, 3}, {.padding = 1}},
      {{2, 16, 3, 6, 5}, {16, 16, 1, 3, 3}, {.padding = {0, 1, 1}}},
      {{2, 16, 6, 3, 5}, {16, 16, 3, 1, 1}, {.padding = {1, 0, 0}}},
      {{2, 16, 5, 3, 6}, {16, 16, 3, 1, 3}, {.padding = {2, 0, 1}}},
      {{2, 20, 17, 19}, {24, 20, 3, 3}, {.padding = 9, .dilation = 9}},  // taps far apart
      {{2, 6, 21, 20}, {8, 6, 3, 3}, {.stride = 2, .padding = 12, .dilation = 12}},
      {{1, 33, 200}, {40, 33, 4}, {.stride = 3, .padding = 12, .dilation = 15}},
      {{3, 4, 9, 30}, {5, 4, 2, 2}, {.stride = 4, .padding = 1}},
      {{2, 37, 9, 13}, {53, 37, 3, 3}, {.padding = 1}},  // panels of all widths
      {{2, 5, 9, 8}, {69, 5, 3, 2}, {}},
      {{2, 3, 9, 8}, {26, 3, 3, 2}, {.stride = 2}},
      {{3, 50, 7, 9}, {50, 1, 5, 5}, {.padding = 2, .groups = 50}},  // depthwise: blocks meet
      {{2, 8, 12, 10}, {8, 1, 3, 3}, {.padding = 2, .dilation = 2, .groups = 8}},
      {{1, 8, 18, 17}, {8, 1, 5, 5}, {.stride = 2, .padding = 2, .groups = 8}},
      {{1, 4, 30, 70},
       {4, 1, 3, 3},
       {.stride = 2, .padding = 1, .groups = 4}},  // depthwise: tiles of a stride meet
      {{2, 4, 9, 11}, {4, 1, 3, 3}, {.stride = {2, 1}, .padding = 2, .dilation = {2, 1}, .groups = 4}},
      {{2, 4, 640},
       {4, 1, 3},
       {.stride = 300, .groups = 4}},  // depthwise: more results of an output than tiles take
      {{2, 24, 9, 9}, {24, 1, 3, 3}, {.stride = 2, .padding = 1, .groups = 24}},  // in half vectors
      {{2, 56, 9, 8}, {56, 1, 3, 3}, {.stride = 2, .padding = 1, .groups = 56}},  // three, three and one
      {{2, 20, 5, 6, 5}, {20, 1, 3, 1, 1}, {.padding = {1, 0, 0}, .groups = 20}},
      {{2, 40, 5, 6, 5}, {40, 1, 5, 1, 1}, {.padding = {2, 0, 0}, .groups = 40}},  // three and two
      {{1, 256, 6, 7}, {256, 1, 3, 3}, {.padding = 1, .groups = 256}},             // far apart: copied
      {{2, 40, 20, 40}, {40, 1, 7, 7}, {.padding = 3, .groups = 40}},              // lines in pieces
      {{1, 32, 900}, {32, 1, 31}, {.padding = 15, .groups = 32}},
      {{9, 32, 7, 7}, {32, 1, 7, 7}, {.padding = 3, .groups = 32}},          // no pixel has all taps
      {{2, 20, 5, 4}, {20, 1, 3, 9}, {.padding = {1, 4}, .groups = 20}},     // nor any its last ones
      {{1, 16, 2, 1033}, {16, 1, 1, 3}, {.padding = {0, 2}, .groups = 16}},  // lines in two
      {{2, 3, 40, 50}, {3, 1, 11, 11}, {.padding = 5, .groups = 3}},  // filters of pictures: periods of lanes
      {{1, 1, 30, 70}, {1, 1, 5, 5}, {.padding = 2}},
      {{2, 12, 20, 19}, {12, 1, 3, 3}, {.padding = 1, .groups = 12}},
      {{2, 14, 9, 21}, {14, 1, 3, 5}, {.padding = {1, 2}, .dilation = {1, 2}, .groups = 14}},
      {{2, 5, 3, 6, 30}, {5, 1, 3, 3, 3}, {.padding = 1, .groups = 5}},
      {{2, 3, 31, 33}, {3, 1, 5, 5}, {.stride = 2, .padding = 2, .groups = 3}},
      {{2, 3, 17, 300}, {3, 1, 3, 4}, {.stride = {1, 3}, .padding = {2, 1}, .groups = 3}},
      {{1, 2, 700}, {2, 1, 9}, {.padding = 20, .dilation = 5, .groups = 2}},
      {{2, 10, 6, 40}, {10, 1, 2, 7}, {.stride = {2, 1}, .padding = {3, 9}, .groups = 10}},
      {{2, 7, 60, 30}, {7, 1, 3, 3}, {.padding = {40, 1}, .dilation = {20, 1}, .groups = 7}},
      {{2, 20, 7, 6}, {80, 1, 3, 3}, {.padding = 1, .groups = 20}},  // multipliers
      {{2, 7, 7, 6}, {21, 1, 3, 3}, {.stride = 2, .groups = 7}},
      {{2, 34, 7, 6}, {17, 2, 3, 3}, {.padding = 1, .groups = 17}},
      {{2, 24, 9, 8}, {24, 4, 3, 3}, {.padding = 1, .groups = 6}},  // few channels a group
      {{2, 24, 9, 8}, {24, 8, 3, 3}, {.stride = 2, .padding = 1, .groups = 3}},
      {{3, 32, 9, 13}, {32, 4, 3, 3}, {.padding = 1, .groups = 8}},  // whole vectors of groups
      {{2, 32, 9, 10}, {32, 8, 3, 3}, {.padding = 1, .groups = 4}},
      {{2, 64, 7, 9}, {64, 4, 5, 7}, {.stride = {2, 1}, .padding = {2, 3}, .groups = 16}},
      {{2, 48, 7, 9}, {48, 8, 3, 4}, {.stride = 2, .padding = 1, .groups = 6}},
      {{1, 16, 40}, {16, 2, 9}, {.padding = 8, .dilation = 2, .groups = 8}},
      {{2, 36, 7, 6}, {40, 9, 3, 3}, {.padding = 2, .dilation = 2, .groups = 4}},
      {{2, 80, 6, 6}, {96, 40, 3, 3}, {.padding = 1, .groups = 2}},
      {{2, 60, 5, 5}, {90, 20, 1, 1}, {.groups = 3}},
      {{2, 132, 7, 6}, {220, 12, 3, 3}, {.padding = 1, .groups = 11}},  // some groups at a time
      {{2, 160, 5, 6}, {160, 16, 5, 5}, {.padding = 2, .groups = 10}},
      {{3, 32, 6, 31}, {32, 16, 3, 3}, {.padding = 1, .groups = 2}},  // a group is a vector
      {{1, 64, 5, 40}, {64, 16, 3, 4}, {.stride = {2, 1}, .padding = 1, .groups = 4}},
      {{2, 20, 17, 19}, {9, 20, 1, 1}, {}},  // contiguous: products of planes
      {{2, 99, 5, 6}, {6, 33, 3, 4}, {.stride = {1, 2}, .padding = 3, .groups = 3}},
      {{2, 33, 5, 5}, {20, 33, 3, 3}, {.padding = 8, .dilation = 8}},  // taps that are always outside
      {{9, 40, 7, 7}, {20, 40, 5, 5}, {.padding = 2}},                 // each tap has windows of its own
      {{2, 10, 6, 7}, {40, 10, 7, 5}, {.padding = 3}},
      {{2, 60, 5, 6}, {4, 30, 3, 3}, {.padding = 1, .groups = 2}},
      {{2, 60, 5, 6}, {24, 20, 3, 3}, {.padding = 1, .groups = 3}},
      {{2, 8, 33, 33}, {12, 8, 3, 3}, {.padding = 12, .dilation = 12}},  // sums leave out padding
      {{2, 40, 25, 26}, {34, 40, 3, 3}, {.padding = 6, .dilation = 6}},
      {{5, 5, 4}, {1, 5, 3}, {.stride = 3, .padding = {{3, 0}}, .dilation = 2}},  // taps in the padding alone
      {{3, 4, 8, 12}, {20, 4, 4, 4}, {.stride = 4}},                              // patches of few channels
      {{1, 520, 4, 3}, {6, 260, 3, 3}, {.padding = 1, .groups = 2}},              // several blocks of a group
      {{2, 16, 4, 5, 6}, {16, 16, 3, 3, 3}, {.padding = 1}},  // and taps of a third dimension
      {{1, 18, 7, 6, 9}, {33, 18, 5, 3, 3}, {.padding = {{3, 0}, {1, 1}, {0, 1}}}},
      {{1, 16, 40, 3, 4}, {17, 16, 2, 3, 3}, {}},
      {{2, 16, 9, 8}, {16, 16, 5, 3}, {.padding = 1}},
      {{2, 17, 6, 11}, {16, 17, 3, 4}, {.padding = {2, 1}}},
      {{2, 17, 7, 6}, {16, 17, 2, 2}, {}},  // and 2 taps, and strides that cut a kernel into phases
      {{2, 40, 30}, {16, 40, 2}, {.padding = 1}},
      {{2, 16, 8, 8}, {16, 16, 4, 4}, {.stride = 2, .padding = 1}},
      {{1, 18, 9, 7}, {33, 18, 4, 4}, {.stride = 2, .padding = {{1, 2}, {0, 3}}}},
      {{1, 16, 5, 12}, {20, 16, 2, 6}, {.stride = {1, 3}, .padding = {1, 2}}},
      {{2, 16, 9, 11}, {16, 16, 9, 6}, {.stride = {3, 2}, .padding = 4}},
      {{2, 16, 60}, {24, 16, 16}, {.stride = 8, .padding = 4}},
      {{1, 16, 3, 6, 8}, {17, 16, 3, 4, 4}, {.stride = {1, 2, 2}, .padding = 1}},
      {{1, 16, 4, 3, 8}, {16, 16, 2, 2, 2}, {}},
      {{2, 16, 4, 4}, {20, 16, 6, 6}, {.stride = 3, .padding = 2}},
  };
}

/// Reproducible choices: the standard fixes what mt19937_64 gives, but not what its distributions make of it.
class Chooser {
 public:
  template <std::size_t n>
  int64_t from(const std::array<int64_t, n>& values) {
    return values[engine_() % n];
  }

 private:
  std::mt19937_64 engine_{20240607};
};

}  // namespace

std::string ConvCase::name() const {
  std::string text = "input " + to_string(input) + " weight " + to_string(weight) + " stride " +
                     to_string({options.stride.begin(), options.stride.end()}) + " dilation " +
                     to_string({options.dilation.begin(), options.dilation.end()}) + " groups " +
                     std::to_string(options.groups) + " padding " + options.padding.mode();
  for (const auto& [low, high] : options.padding.sides())
    text.append("{").append(std::to_string(low)).append(", ").append(std::to_string(high)).append("}");
  return text;
}

std::vector<ConvCase> conv_cases() {
  std::vector<ConvCase> cases = special_cases();
  Chooser choose;
  while (cases.size() < 375) {
    const auto dims = static_cast<std::size_t>(1 + cases.size() % 3);
    const int64_t groups = choose.from<4>({1, 1, 2, 3});
    const int64_t in = groups * choose.from<5>({1, 2, 3, 5, 8});
    const int64_t out = groups * choose.from<5>({1, 2, 3, 7, 16});
    ConvCase c{{choose.from<4>({1, 2, 3, 5}), in}, {out, in / groups}, {.groups = groups}};
    std::vector<int64_t> stride, dilation;
    std::vector<std::pair<int64_t, int64_t>> padding;
    for (std::size_t d = 0; d < dims; ++d) {
      const int64_t kernel = choose.from<5>({1, 2, 3, 3, 5});
      dilation.push_back(choose.from<4>({1, 1, 1, 2}));
      stride.push_back(choose.from<5>({1, 1, 2, 3, 4}));
      padding.emplace_back(choose.from<4>({0, 1, 2, 3}), choose.from<4>({0, 1, 2, 3}));
      const int64_t reach = dilation.back() * (kernel - 1) + 1 - padding.back().first - padding.back().second;
      const int64_t size = choose.from<5>({3, 4, 6, 7, 11}) - (dims == 3 ? 1 : 0);
      c.input.push_back(std::max(size, reach));
      c.weight.push_back(kernel);
    }
    c.options.stride = stride;
    c.options.dilation = dilation;
    c.options.padding = dims == 1   ? Padding({padding[0]})
                        : dims == 2 ? Padding({padding[0], padding[1]})
                                    : Padding({padding[0], padding[1], padding[2]});
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<ConvCase> small_conv_cases() {
  return {
      {{2, 2, 5}, {3, 2, 3}, {.stride = 2, .padding = 1}},
      {{1, 2, 4, 3}, {2, 2, 3, 3}, {.padding = 1}},
      {{2, 2, 4, 5}, {3, 2, 1, 1}, {}},
      {{1, 4, 4, 4}, {4, 2, 2, 3}, {.stride = {2, 1}, .padding = {{0, 1}, {1, 0}}, .groups = 2}},
      {{1, 3, 5, 4}, {3, 1, 3, 3}, {.padding = 2, .dilation = 2, .groups = 3}},
      {{1, 2, 3, 3}, {2, 2, 3, 3}, {}},
      {{1, 2, 3, 3, 2}, {2, 2, 1, 3, 2}, {.padding = {0, 1, 0}}},
      {{1, 1, 3, 4, 3}, {2, 1, 2, 2, 2}, {.stride = 2, .padding = 1}},
      {{1, 8, 3, 2}, {8, 8, 3, 3}, {.padding = 1}},  // channels enough for winograd
      {{1, 8, 3, 6}, {8, 8, 2, 4}, {.stride = {1, 2}, .padding = {0, 1}}},
  };
}

}  // namespace pleat::test
