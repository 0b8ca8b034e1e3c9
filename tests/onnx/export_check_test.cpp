#include "pleat/tests/onnx/export_check.h"

#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/nn/module_cases.h"

using namespace pleat;
using namespace pleat_test;

const char* pleat_test::onnxruntime_python() {
  const char* python = std::getenv("PLEAT_TEST_PYTHON");
  if (python == nullptr ||
      std::system((std::string(python) + " -c 'import onnx, onnxruntime' 2>/dev/null").c_str()) != 0)
    return nullptr;
  return python;
}

namespace {

/// Where `found` is not what was expected, by `tolerance` of the largest number; empty: it is.
std::string difference(const Tensor& found, const Tensor& expected, double tolerance) {
  if (found.dtype() != expected.dtype() || found.shape() != expected.shape())
    return found.describe() + " instead of " + expected.describe();
  const Tensor y = found.to(float64), wanted = expected.to(float64);
  const Tensor finite = isfinite(wanted);
  const Tensor same = logical_or(y == wanted, logical_and(isnan(y), isnan(wanted)));
  if (!all(logical_or(finite, same)).item<bool>()) return "other infinities or NaN";
  const Tensor distance = where(finite, abs(y - wanted), 0.0);
  if (found.numel() == 0) return "";
  const double size = std::max(1.0, max(where(finite, abs(wanted), 0.0)).item());
  const double error = max(distance).item() / size;
  const bool fits = error <= (is_floating(found.dtype()) ? tolerance : 0);
  return fits ? "" : "error " + std::to_string(error);
}

}  // namespace

void ExportCheck::add(const std::string& name, nn::Module& net, const Function& function,
                      const std::vector<Tensor>& examples, const std::vector<Tensor>& others,
                      const onnx::ExportOptions& options, double tolerance) {
  add_file(
      name,
      [&](const std::filesystem::path& file) { onnx::export_onnx(file, net, examples, function, options); },
      [&](const std::vector<Tensor>& in) {
        net.eval();
        return function(in);
      },
      examples, others, tolerance);
}

void ExportCheck::add_file(const std::string& name,
                           const std::function<void(const std::filesystem::path&)>& write,
                           const Function& function, const std::vector<Tensor>& examples,
                           const std::vector<Tensor>& others, double tolerance) {
  const std::filesystem::path folder = folder_ / name;
  std::filesystem::create_directories(folder);
  try {
    write(folder / "model.onnx");
  } catch (const Error& error) {
    write_bytes(folder / "refused", std::string_view(error.what()));
    differences_ += name + ": not exported: " + error.what() + "\n";
    return;
  }
  write_bytes(folder / "tolerance", std::to_string(tolerance * 1e9));
  const NoGrad off;
  const std::vector<std::vector<Tensor>> runs{examples, others};
  const auto differs = [&](std::size_t run, const std::string& how) {
    differences_ += name + ", read by Pleat, run " + std::to_string(run) + ": " + how + "\n";
  };
  for (std::size_t run = 0; run < runs.size(); ++run) {
    try {
      if (runs[run].empty() && run > 0) continue;
      onnx::ImportedNetwork net = onnx::import_onnx(folder / "model.onnx");
      net.eval();
      const std::vector<Tensor> found = net(runs[run]), expected = function(runs[run]);
      for (std::size_t i = 0; i < expected.size(); ++i)
        if (const std::string how = difference(found.at(i), expected[i], tolerance); !how.empty())
          differs(run, "output " + std::to_string(i) + ": " + how);
    } catch (const std::exception& error) {
      differs(run, error.what());
    }
  }
  for (std::size_t run = 0; run < runs.size() && onnxruntime_python() != nullptr; ++run) {
    const auto save = [&](const char* what, const std::vector<Tensor>& tensors) {
      for (std::size_t i = 0; i < tensors.size(); ++i)
        io::write_npy(folder / (std::to_string(run) + what + std::to_string(i) + ".npy"), tensors[i]);
    };
    if (runs[run].empty()) continue;
    save("in", runs[run]);
    save("out", function(runs[run]));
  }
}

std::string ExportCheck::run() const {
  if (onnxruntime_python() == nullptr) return differences_;
  write_bytes(folder_ / "run.py", std::string_view(R"(
import glob, os, sys
import numpy, onnx, onnxruntime

def check(folder):
    if os.path.exists(folder + "/refused"):
        raise Exception("not exported: " + open(folder + "/refused").read())
    file = folder + "/model.onnx"
    onnx.checker.check_model(onnx.load(file), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    tolerance = float(open(folder + "/tolerance").read()) / 1e9
    for run in "01":
        load = lambda what, n: [numpy.load(f"{folder}/{run}{what}{i}.npy") for i in range(n)]
        if not os.path.exists(f"{folder}/{run}in0.npy"):
            continue
        names = [i.name for i in session.get_inputs()]
        inputs = dict(zip(names, load("in", len(names))))
        found = session.run(None, inputs)
        for i, (y, expected) in enumerate(zip(found, load("out", len(found)))):
            where = f"run {run}, output {i}: "
            if y.dtype != expected.dtype or y.shape != expected.shape:
                raise Exception(f"{where}{y.dtype} {y.shape} instead of {expected.dtype} {expected.shape}")
            if y.dtype.kind != "f":
                wrong = int((y != expected).sum())
                if wrong: raise Exception(f"{where}{wrong} of {y.size} differ")
                continue
            y, expected = y.astype(float), expected.astype(float)
            finite = numpy.isfinite(expected)
            if not numpy.array_equal(y[~finite], expected[~finite], equal_nan=True):
                raise Exception(f"{where}{y[~finite]} instead of {expected[~finite]}")
            size = max(1, abs(expected[finite]).max(initial=0))
            error = abs(y - expected)[finite].max(initial=0) / size
            if not error <= tolerance: raise Exception(f"{where}error {error:.2g} above {tolerance:.2g}")

bad = 0
for folder in sorted(glob.glob(sys.argv[1] + "/*/")):
    try:
        check(folder)
    except Exception as error:
        bad += 1
        print(os.path.basename(folder[:-1]) + ": " + str(error).strip()[:600])
print(f"checked {len(glob.glob(sys.argv[1] + '/*/'))}") if not bad else sys.exit(1)
)"));
  const std::string command = std::string(onnxruntime_python()) + " '" + (folder_ / "run.py").string() +
                              "' '" + folder_.path().string() + "' >'" + (folder_ / "report").string() +
                              "' 2>&1";
  if (std::system(command.c_str()) == 0) return differences_;
  const std::vector<unsigned char> report = read_bytes(folder_ / "report");
  return differences_ + std::string(report.begin(), report.end());
}

namespace {

ExportCheck::Function forward_of(nn::Module& net) {
  return [&net](const std::vector<Tensor>& in) { return std::vector<Tensor>{net(in[0])}; };
}

/// Statistics as after a training.
void train_statistics(nn::Module& net) {
  for (const auto& [name, buffer] : net.named_buffers()) {
    if (name.ends_with("running_mean")) nn::init::normal_(buffer, 0, 0.3);
    if (name.ends_with("running_var")) nn::init::uniform_(buffer, 0.5, 2);
  }
}

/// Another batch like `x`, of `more` samples more.
Tensor larger(const Tensor& x, int64_t dim, int64_t more) {
  Shape shape = x.shape();
  shape[static_cast<std::size_t>(dim)] += more;
  if (is_floating(x.dtype())) return randn(shape).to(x.dtype());
  return randint(0, max(x).item<int64_t>() + 1, shape).to(x.dtype());
}

void add_net(ExportCheck& all, const std::string& name, nn::Module& net, const Tensor& example,
             int64_t dim = 0, double tolerance = 2e-5) {
  train_statistics(net);
  all.add(name, net, forward_of(net), {example}, {larger(example, dim, 2)}, {.batch_dims = dim}, tolerance);
}

}  // namespace

TEST_CASE("a file of ONNX computes what every module does", "[onnx][cpu]") {
  manual_seed(1);
  ExportCheck all;
  const std::set<std::string> by_steps{"MultiheadAttention", "TransformerEncoderLayer", "LSTM", "GRU", "RNN"};
  for (const test::ModuleCase& one : test::module_cases()) {
    const std::unique_ptr<nn::Module> net = one.make();
    const Tensor input = one.make_input();
    add_net(all, one.name, *net, one.classes > 0 ? input : input.to(float32),
            by_steps.contains(one.name) ? 1 : 0);
  }
  CHECK(all.run() == "");
}

TEST_CASE("a file of ONNX computes what every network of models/ does", "[onnx][cpu]") {
  manual_seed(2);
  ExportCheck all;
  for (const std::string& name : models::classifier_names()) {
    nn::Sequential net = models::make_classifier(name, {.num_classes = 10});
    add_net(all, name, net, randn({2, 3, 32, 32}), 0, 1e-4);
  }
  nn::Sequential lenet = models::lenet({.num_classes = 10, .in_channels = 1, .image_size = 28});
  add_net(all, "lenet", lenet, randn({1, 1, 28, 28}));
  nn::Sequential voxels = models::voxel_net({.num_classes = 3, .in_channels = 2});
  add_net(all, "voxel_net", voxels, randn({2, 2, 8, 16, 8}));
  nn::Sequential unet = models::unet({.num_classes = 4, .in_channels = 1, .widths = {8, 16, 32}});
  add_net(all, "unet", unet, randn({1, 1, 12, 20}));
  nn::Sequential generator = models::dcgan_generator(8), discriminator = models::dcgan_discriminator(8);
  add_net(all, "dcgan_generator", generator, randn({2, 100, 1, 1}));
  add_net(all, "dcgan_discriminator", discriminator, randn({2, 3, 64, 64}));
  models::CharTransformer text({.characters = 7, .length = 6, .width = 16, .heads = 4, .layers = 2});
  add_net(all, "char_transformer", text, randint(0, 7, {3, 5}));
  CHECK(all.run() == "");
}

TEST_CASE("a file of ONNX computes float64 and float16 networks", "[onnx][cpu]") {
  manual_seed(3);
  ExportCheck all;
  // onnxruntime has neither Conv nor Erf of float64.
  nn::Sequential net{nn::Linear{{.in_features = 3, .out_features = 8}}, nn::Tanh{},
                     nn::LayerNorm{{.normalized_shape = 8}},
                     nn::Linear{{.in_features = 8, .out_features = 2}}};
  net.to(float64);
  add_net(all, "float64", net, randn({2, 3}, float64), 0, 1e-6);
  nn::Sequential half = models::small_cnn({.num_classes = 5});
  half.to(float16);
  add_net(all, "float16", half, randn({2, 3, 32, 32}).to(float16), 0, 5e-3);
  CHECK(all.run() == "");
}

TEST_CASE("a file of ONNX computes a saved classifier from the bytes of a picture", "[onnx][cpu]") {
  manual_seed(6);
  ExportCheck all;
  train::Classifier classifier = train::make_classifier("small", {.num_classes = 2, .image_size = 16},
                                                        {"a", "b"}, {0.1, 0.5, 0.4}, {0.2, 0.3, 0.4});
  train_statistics(classifier.net);
  const auto predict = [&](const std::vector<Tensor>& in) {
    data::Batch batch{in[0], {}};
    classifier.normalization()(batch, data::SampleRandom(0, 0, {}, 0));
    classifier.net.eval();
    return std::vector<Tensor>{classifier.net(batch.inputs)};
  };
  const auto pictures = [](int64_t n) { return randint(0, 256, {n, 3, 16, 16}).to(uint8); };
  all.add_file("classifier",
               [&](const std::filesystem::path& file) { train::export_classifier(file, classifier); },
               predict, {pictures(1)}, {pictures(4)});
  CHECK(all.run() == "");
}

TEST_CASE("a file of ONNX computes recurrent networks with states and lengths", "[onnx][cpu]") {
  manual_seed(4);
  ExportCheck all;
  nn::LSTM lstm{
      {.input_size = 3, .hidden_size = 4, .num_layers = 2, .batch_first = true, .bidirectional = true}};
  const auto with_states = [&](const std::vector<Tensor>& in) {
    const RecurrentResult y = lstm.forward(in[0], {.h = in[1], .c = in[2]});
    return std::vector<Tensor>{y.output, y.h, y.c};
  };
  const auto inputs = [](int64_t batch) {
    return std::vector<Tensor>{randn({batch, 5, 3}), randn({4, batch, 4}), randn({4, batch, 4})};
  };
  all.add("lstm", lstm, with_states, inputs(2), inputs(3), {.batch_dims = {0, 1, 1}});
  nn::GRU gru{{.input_size = 3, .hidden_size = 4, .bias = false}};
  const auto whole = [&](const std::vector<Tensor>& in) {
    const RecurrentResult y = gru.forward(in[0], {});
    return std::vector<Tensor>{y.output, y.h};
  };
  all.add("gru", gru, whole, {randn({5, 2, 3})}, {randn({5, 7, 3})}, {.batch_dims = 1});
  nn::RNN rnn{{.input_size = 3, .hidden_size = 4, .relu = true}};
  const Tensor x = randn({5, 3});
  all.add("rnn without a batch", rnn, forward_of(rnn), {x}, {}, {.batch_dims = {}});
  const auto by_lengths = [&](const std::vector<Tensor>& in) {
    const RecurrentResult y = lstm.forward(in[0], {.lengths = in[1]});
    return std::vector<Tensor>{y.output, y.h, y.c};
  };
  all.add("lengths", lstm, by_lengths, {randn({3, 5, 3}), tensor({5, 1, 3})},
          {randn({2, 5, 3}), tensor({2, 5})}, {.batch_dims = {0, 0}});
  CHECK(all.run() == "");
}

TEST_CASE("a file of ONNX computes what needs indices", "[onnx][cpu]") {
  manual_seed(7);
  ExportCheck all;
  const auto add = [&](const std::string& name, const std::function<Tensor(const Tensor&)>& function) {
    nn::Lambda net(function);
    all.add(name, net, forward_of(net), {randn({2, 3, 6, 7})}, {randn({4, 3, 6, 7})});
  };
  add("max_unpool2d", [](const Tensor& x) {
    const auto [y, places] =
        max_pool_with_indices(x, {.kernel_size = 2, .stride = {2, 3}, .padding = {1, 0}});
    return max_unpool2d(y * 2, places,
                        {.kernel_size = 2, .stride = {2, 3}, .padding = {1, 0}, .output_size = {6, 7}});
  });
  add("max_pool_with_indices", [](const Tensor& x) {
    const MaxPoolOptions options{.kernel_size = 2, .ceil_mode = true};
    return max_pool_with_indices(x, options).indices.to(float32);
  });
  add("gather_nd", [](const Tensor& x) {
    const Tensor pairs = remainder(narrow(argsort(x, {.dim = 3}), 3, 0, 2), 3);
    return gather_nd(x, pairs, {.batch_dims = 1});
  });
  const Tensor places = tensor({{2}, {0}, {2}});
  for (const auto& [name, reduction] :
       std::map<std::string, std::optional<ScatterReduction>>{{"scatter_nd", std::nullopt},
                                                              {"scatter_nd sum", ScatterReduction::sum},
                                                              {"scatter_nd prod", ScatterReduction::prod},
                                                              {"scatter_nd amax", ScatterReduction::amax},
                                                              {"scatter_nd amin", ScatterReduction::amin}})
    add(name, [&, reduce = reduction](const Tensor& x) {
      const Tensor rows = transpose(x, 0, 1);  // the batch is no dimension of the indices
      const Tensor where = reduce ? places : narrow(places, 0, 0, 2);
      return transpose(scatter_nd(rows, where, narrow(rows * 3, 0, 0, where.size(0)), {.reduction = reduce}),
                       0, 1);
    });
  for (const auto& [name, reduction] :
       std::map<std::string, ScatterReduction>{{"scatter_reduce sum", ScatterReduction::sum},
                                               {"scatter_reduce prod", ScatterReduction::prod},
                                               {"scatter_reduce amax", ScatterReduction::amax},
                                               {"scatter_reduce amin", ScatterReduction::amin}})
    add(name, [reduce = reduction](const Tensor& x) {
      return scatter_reduce(x, 3, remainder(argsort(x, {.dim = 3}), 3), x * 2, {.reduce = reduce});
    });
  nn::TransformerDecoder decoder{
      {.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 16, .batch_first = true}, .num_layers = 2}};
  all.add("TransformerDecoder", decoder,
          [&](const std::vector<Tensor>& in) { return std::vector{decoder.forward(in[0], in[1])}; },
          {randn({2, 4, 8}), randn({2, 5, 8})}, {randn({3, 4, 8}), randn({3, 5, 8})});
  CHECK(all.run() == "");
}

TEST_CASE("a file of ONNX computes attention with masks", "[onnx][cpu]") {
  manual_seed(5);
  ExportCheck all;
  nn::MultiheadAttention attention{{.embed_dim = 8, .num_heads = 2, .batch_first = true}};
  const auto with_mask = [&](const std::vector<Tensor>& in) {
    const auto y = attention.forward(in[0], in[1], in[1], {.key_padding_mask = in[2], .need_weights = true});
    return std::vector<Tensor>{y.output, y.weights};
  };
  const auto inputs = [](int64_t batch) {
    return std::vector<Tensor>{randn({batch, 4, 8}), randn({batch, 5, 8}),
                               expand(arange(5) >= 3, {batch, 5}).clone()};
  };
  all.add("key_padding_mask", attention, with_mask, inputs(2), inputs(3));
  const auto causal = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{
        scaled_dot_product_attention(in[0], in[0], in[0], {.is_causal = true}),
        scaled_dot_product_attention(in[0], in[0], in[0], {.mask = tril(ones({4, 4})) > 0})};
  };
  all.add("causal", attention, causal, {randn({2, 3, 4, 8})}, {randn({5, 3, 4, 8})});
  const auto floating = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{
        scaled_dot_product_attention(in[0], in[0], in[0], {.mask = in[1], .scale = 0.3})};
  };
  const Tensor mask = randn({4, 4});
  narrow(mask, 0, 1, 1) = -std::numeric_limits<double>::infinity();  // a query without keys
  all.add("floating mask", attention, floating, {randn({2, 3, 4, 8}), mask}, {randn({1, 3, 4, 8}), mask},
          {.batch_dims = {0, -1}});
  CHECK(all.run() == "");
}
