#include <functional>
#include <map>
#include <string>
#include <vector>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

using namespace pleat;

/// Where a page writes one letter for two sizes they must be equal, and nothing broadcasts.

namespace {

using Tensors = std::vector<Tensor>;

struct OneLetter {
  std::string name;
  /// Of each tensor the letters of its sizes, or numbers: "N C 2"; "int64" makes it zeros of that type.
  std::vector<std::string> inputs;
  std::function<void(const Tensors&)> run;
};

const std::map<std::string, int64_t> sizes{{"N", 2},  {"C", 4},  {"L", 3}, {"S", 5},  {"E", 8},
                                           {"H", 6},  {"W", 7},  {"D", 9}, {"K", 10}, {"M", 11},
                                           {"P", 12}, {"R", 13}, {"T", 3}, {"I", 14}, {"O", 15}};

struct Input {
  std::vector<std::string> letters;
  bool integers = false;
};

Input parsed(const std::string& text) {
  Input input;
  std::string word;
  for (const char c : text + ' ') {
    if (c != ' ') {
      word += c;
      continue;
    }
    if (word == "int64")
      input.integers = true;
    else if (!word.empty())
      input.letters.push_back(word);
    word.clear();
  }
  return input;
}

int64_t size_of_letter(const std::string& letter) {
  const auto found = sizes.find(letter);
  return found != sizes.end() ? found->second : std::stoll(letter);
}

Tensor made(const Input& input, const Shape& shape) {
  return input.integers ? zeros(shape, {.dtype = int64}) : rand(shape) * 0.5 + 0.25;
}

std::vector<OneLetter> cases() {
  std::vector<OneLetter> all;
  const auto add = [&](std::string name, std::vector<std::string> inputs,
                       std::function<void(const Tensors&)> run) {
    all.push_back({std::move(name), std::move(inputs), std::move(run)});
  };
  for (const bool batch_first : {false, true}) {
    const auto sequence = [&](const std::string& length, const std::string& width) {
      return batch_first ? "N " + length + ' ' + width : length + " N " + width;
    };
    const std::string which = batch_first ? " batch_first" : "";
    for (const bool need_weights : {false, true})
      add("MultiheadAttention" + which + (need_weights ? " need_weights" : ""),
          {sequence("L", "E"), sequence("S", "E"), sequence("S", "E")}, [=](const Tensors& t) {
            nn::MultiheadAttention{{.embed_dim = 8, .num_heads = 2, .batch_first = batch_first}}.forward(
                t[0], t[1], t[2], {.need_weights = need_weights});
          });
    add("MultiheadAttention kdim" + which,
        {sequence("L", "E"), sequence("S", "C"), sequence("S", "H"), "L S"}, [=](const Tensors& t) {
          nn::MultiheadAttention{
              {.embed_dim = 8, .num_heads = 2, .kdim = 4, .vdim = 6, .batch_first = batch_first}}
              .forward(t[0], t[1], t[2], {.attn_mask = t[3]});
        });
    add("MultiheadAttention padding" + which,
        {sequence("L", "E"), sequence("S", "E"), sequence("S", "E"), "N S"}, [=](const Tensors& t) {
          nn::MultiheadAttention{{.embed_dim = 8, .num_heads = 2, .batch_first = batch_first}}.forward(
              t[0], t[1], t[2], {.key_padding_mask = t[3] > 2});
        });
    const nn::TransformerEncoderLayerOptions layer{
        .d_model = 8, .nhead = 2, .dim_feedforward = 4, .batch_first = batch_first};
    add("TransformerEncoder" + which, {sequence("L", "E"), "N L"}, [=](const Tensors& t) {
      nn::TransformerEncoder{{.layer = layer, .num_layers = 1}}.forward(t[0], {.key_padding_mask = t[1] > 2});
    });
    add("TransformerDecoderLayer" + which, {sequence("L", "E"), sequence("S", "E")},
        [=](const Tensors& t) { nn::TransformerDecoderLayer{layer}.forward(t[0], t[1]); });
    add("TransformerDecoder" + which, {sequence("L", "E"), sequence("S", "E")}, [=](const Tensors& t) {
      nn::TransformerDecoder{{.layer = layer, .num_layers = 2}}.forward(t[0], t[1]);
    });
    add("Transformer" + which, {sequence("L", "E"), sequence("S", "E")}, [=](const Tensors& t) {
      nn::Transformer{{.d_model = 8,
                       .nhead = 2,
                       .num_encoder_layers = 1,
                       .num_decoder_layers = 1,
                       .dim_feedforward = 4,
                       .batch_first = batch_first}}
          .forward(t[0], t[1]);
    });
    add("LSTM" + which, {sequence("L", "I"), "1 N H", "1 N H"}, [=](const Tensors& t) {
      nn::LSTM{{.input_size = 14, .hidden_size = 6, .batch_first = batch_first}}.forward(
          t[0], {.h = t[1], .c = t[2]});
    });
    add("GRU" + which, {sequence("L", "I"), "2 N H"}, [=](const Tensors& t) {
      nn::GRU{{.input_size = 14, .hidden_size = 6, .batch_first = batch_first, .bidirectional = true}}
          .forward(t[0], {.h = t[1]});
    });
    add("RNN lengths" + which, {sequence("L", "I"), "N int64"}, [=](const Tensors& t) {
      nn::RNN{{.input_size = 14, .hidden_size = 6, .batch_first = batch_first}}.forward(
          t[0], {.lengths = t[1] + 1});
    });
  }
  add("MultiheadAttention of one sequence", {"L E", "S E", "S E"}, [](const Tensors& t) {
    nn::MultiheadAttention{{.embed_dim = 8, .num_heads = 2}}.forward(t[0], t[1], t[2]);
  });
  add("LSTMCell", {"N I", "N H", "N H"}, [](const Tensors& t) {
    nn::LSTMCell{{.input_size = 14, .hidden_size = 6}}.forward(t[0], {.h = t[1], .c = t[2]});
  });
  add("GRUCell", {"I", "H"},
      [](const Tensors& t) { nn::GRUCell{{.input_size = 14, .hidden_size = 6}}.forward(t[0], {.h = t[1]}); });
  add("RNNCell", {"N I", "N H"},
      [](const Tensors& t) { nn::RNNCell{{.input_size = 14, .hidden_size = 6}}.forward(t[0], {.h = t[1]}); });
  add("recurrent", {"L N 24", "24 H", "24", "N H", "N H"},
      [](const Tensors& t) { recurrent(t[0], t[1], t[2], t[3], t[4], {.cell = RecurrentCell::lstm}); });
  add("scaled_dot_product_attention", {"L E", "S E", "S D"},
      [](const Tensors& t) { scaled_dot_product_attention(t[0], t[1], t[2]); });

  using Loss = std::function<Tensor(const Tensor&, const Tensor&)>;
  const std::map<std::string, Loss> of_equal_shapes{
      {"mse_loss", [](auto& a, auto& b) { return mse_loss(a, b); }},
      {"l1_loss", [](auto& a, auto& b) { return l1_loss(a, b); }},
      {"smooth_l1_loss", [](auto& a, auto& b) { return smooth_l1_loss(a, b); }},
      {"huber_loss", [](auto& a, auto& b) { return huber_loss(a, b); }},
      {"bce_with_logits", [](auto& a, auto& b) { return bce_with_logits(a, b); }},
      {"binary_cross_entropy", [](auto& a, auto& b) { return binary_cross_entropy(a, b); }},
      {"kl_div", [](auto& a, auto& b) { return kl_div(a, b); }},
      {"poisson_nll_loss", [](auto& a, auto& b) { return poisson_nll_loss(a, b); }},
      {"sigmoid_focal_loss", [](auto& a, auto& b) { return sigmoid_focal_loss(a, b); }},
      {"dice_loss", [](auto& a, auto& b) { return dice_loss(a, b); }},
      {"hinge_embedding_loss", [](auto& a, auto& b) { return hinge_embedding_loss(a, b); }},
      {"soft_margin_loss", [](auto& a, auto& b) { return soft_margin_loss(a, b); }},
      {"multilabel_soft_margin_loss", [](auto& a, auto& b) { return multilabel_soft_margin_loss(a, b); }},
      {"linear_scan", [](auto& a, auto& b) { return linear_scan(a, b, 0); }},
  };
  for (const auto& [name, loss] : of_equal_shapes)
    add(name, {"N C", "N C"}, [loss = loss](const Tensors& t) { loss(t[0], t[1]); });
  add("cross_entropy", {"N C H", "N H int64", "C"},
      [](const Tensors& t) { cross_entropy(t[0], t[1], {.weight = t[2]}); });
  add("cross_entropy of probabilities", {"N C", "N C", "C"},
      [](const Tensors& t) { cross_entropy(t[0], t[1], {.weight = t[2]}); });
  add("nll_loss", {"N C H W", "N H W int64", "C"},
      [](const Tensors& t) { nll_loss(t[0], t[1], {.weight = t[2]}); });
  add("cosine_embedding_loss", {"N D", "N D", "N"},
      [](const Tensors& t) { cosine_embedding_loss(t[0], t[1], t[2]); });
  add("multi_margin_loss", {"N C", "N int64", "C"},
      [](const Tensors& t) { multi_margin_loss(t[0], t[1], {.weight = t[2]}); });
  add("multilabel_soft_margin_loss weight", {"N C", "N C", "C"},
      [](const Tensors& t) { multilabel_soft_margin_loss(t[0], t[1], {.weight = t[2]}); });

  add("grid_sample", {"N C H W", "N P R 2"}, [](const Tensors& t) { grid_sample(t[0], t[1]); });
  add("affine_grid", {"N 2 3", "N"}, [](const Tensors& t) { affine_grid(t[0], {t[1].size(0), 3, 4, 5}); });
  add("conv2d", {"N C H W", "K C 3 3", "K"}, [](const Tensors& t) { conv2d(t[0], t[1], t[2]); });
  add("conv_transpose2d", {"N C H W", "C K 3 3", "K"},
      [](const Tensors& t) { conv_transpose2d(t[0], t[1], t[2]); });
  add("deform_conv2d", {"N 4 H W", "N 18 H W", "K 4 3 3", "K", "N 9 H W"},
      [](const Tensors& t) { deform_conv2d(t[0], t[1], t[2], t[3], {.padding = 1, .mask = t[4]}); });
  add("batch_norm", {"N C H", "C", "C", "C", "C"},
      [](const Tensors& t) { batch_norm(t[0], t[1], t[2], t[3], t[4], {.training = true}); });
  add("instance_norm", {"N C H", "C", "C", "C", "C"},
      [](const Tensors& t) { instance_norm(t[0], t[1], t[2], t[3], t[4], {}); });
  add("group_norm", {"N C H", "C", "C"},
      [](const Tensors& t) { group_norm(t[0], t[1], t[2], {.num_groups = 2}); });
  add("layer_norm", {"N L C", "L C", "L C"}, [](const Tensors& t) {
    layer_norm(t[0], t[1], t[2], {.normalized_shape = {3, 4}});
  });
  add("rms_norm", {"N C", "C"}, [](const Tensors& t) { rms_norm(t[0], t[1], {.normalized_shape = {4}}); });
  add("max_unpool2d", {"N C H W", "N C H W int64"},
      [](const Tensors& t) { max_unpool2d(t[0], t[1], {.kernel_size = 2}); });
  add("linear", {"N I", "O I", "O"}, [](const Tensors& t) { linear(t[0], t[1], t[2]); });
  add("addmm", {"1", "M K", "K P"}, [](const Tensors& t) { addmm(t[0], t[1], t[2]); });
  add("dot", {"M", "M"}, [](const Tensors& t) { dot(t[0], t[1]); });
  add("matmul", {"M K", "K P"}, [](const Tensors& t) { matmul(t[0], t[1]); });
  add("cdist", {"P M", "R M"}, [](const Tensors& t) { cdist(t[0], t[1]); });
  add("bincount", {"N int64", "N"}, [](const Tensors& t) { bincount(t[0], {.weights = t[1]}); });
  add("index_add", {"N C W", "K int64", "N K W"}, [](const Tensors& t) { index_add(t[0], 1, t[1], t[2]); });
  add("searchsorted", {"N M", "N K"}, [](const Tensors& t) { searchsorted(t[0], t[1]); });
  return all;
}

}  // namespace

TEST_CASE("sizes that a page writes by one letter are equal", "[cpu]") {
  manual_seed(1);
  int checks = 0;
  for (const OneLetter& one : cases()) {
    CAPTURE(one.name);
    std::vector<Input> inputs;
    std::vector<Shape> shapes;
    std::map<std::string, int> uses;
    for (const std::string& text : one.inputs) {
      inputs.push_back(parsed(text));
      shapes.emplace_back();
      for (const std::string& letter : inputs.back().letters) {
        shapes.back().push_back(size_of_letter(letter));
        if (sizes.contains(letter)) ++uses[letter];
      }
    }
    const auto run = [&](const std::vector<Shape>& with) {
      Tensors tensors;
      for (std::size_t i = 0; i < with.size(); ++i) tensors.push_back(made(inputs[i], with[i]));
      one.run(tensors);
    };
    CHECK_NOTHROW(run(shapes));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      for (std::size_t d = 0; d < shapes[i].size(); ++d) {
        if (uses[inputs[i].letters[d]] < 2) continue;
        for (const int64_t size : {int64_t{1}, shapes[i][d] + 1, 2 * shapes[i][d], int64_t{0}}) {
          CAPTURE(i, d, size);
          std::vector<Shape> other = shapes;
          other[i][d] = size;
          CHECK_THROWS_AS(run(other), ShapeError);
          ++checks;
        }
      }
  }
  CHECK(checks > 500);
}

TEST_CASE("affine_grid takes no picture without pixels", "[cpu]") {
  for (const Sizes& size :
       {Sizes{2, 3, 0, 4}, Sizes{2, 3, 4, 0}, Sizes{2, 0, 4, 4}, Sizes{2, 3, -1, 4}, Sizes{}})
    CHECK_THROWS_AS(affine_grid(ones({2, 2, 3}), size), ShapeError);
  CHECK_THROWS_WITH(affine_grid(ones({2, 2, 3}), {2, 3, 0, 4}),
                    "affine_grid: channels and pixels must be at least 1, got a size of [2, 3, 0, 4]");
  CHECK_THROWS_AS(affine_grid(ones({2, 3, 4}), {2, 3, 4, 0, 4}), ShapeError);
  CHECK(affine_grid(ones({0, 2, 3}), {0, 3, 4, 4}).shape() == Shape{0, 4, 4, 2});
}

TEST_CASE("sequences of two batches are refused before a layer has run", "[cpu]") {
  nn::Transformer net{{.d_model = 8, .nhead = 2, .num_encoder_layers = 1, .num_decoder_layers = 1}};
  nn::TransformerDecoderLayer layer{{.d_model = 8, .nhead = 2, .batch_first = true}};
  const uint64_t draws = default_generator().draws();
  CHECK_THROWS_WITH(net.forward(ones({3, 2, 8}), ones({5, 4, 8})),
                    "Transformer: src and tgt must be [length, batch, 8] with one batch for both or, of one "
                    "sequence, [length, 8], got [3, 2, 8] float32 cpu and [5, 4, 8] float32 cpu");
  CHECK_THROWS_AS(layer.forward(ones({2, 3, 8}), ones({4, 1, 8})), ShapeError);
  CHECK_THROWS_AS(layer.forward(ones({2, 3, 8}), ones({3, 8})), ShapeError);
  CHECK(default_generator().draws() == draws);
}
