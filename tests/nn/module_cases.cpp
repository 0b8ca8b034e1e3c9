#include "pleat/tests/nn/module_cases.h"

#include "pleat/core/random/random.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/attention.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/dropout.h"
#include "pleat/nn/embedding.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/norm.h"
#include "pleat/nn/parametrizations.h"
#include "pleat/nn/pool.h"
#include "pleat/nn/recurrent.h"
#include "pleat/nn/shuffle.h"
#include "pleat/nn/squeeze_excitation.h"
#include "pleat/nn/transformer.h"
#include "pleat/nn/upsample.h"

namespace pleat::test {
namespace {

using Integers = std::vector<int64_t>;

template <class M>
std::unique_ptr<nn::Module> made(M module) {
  return std::make_unique<M>(std::move(module));
}

double ratio(int64_t n, int64_t of) { return static_cast<double>(n) / static_cast<double>(of); }

/// A row of a module without options.
template <class M>
ModuleCase plain(const char* name, M module, Shape input = {3, 4}) {
  if constexpr (requires { module.options; }) static_assert(std::is_empty_v<decltype(module.options)>);
  return {name, {}, [module](const Integers&) { return made(nn::clone(module)); }, std::move(input)};
}

/// A row of a module whose options are made of one integer.
template <class M, class F>
ModuleCase by_one(const char* name, F options, Shape input = {3, 4}) {
  return {name, {2}, [options](const Integers& i) { return made(M{options(i[0])}); }, std::move(input)};
}
nn::DropoutOptions one_of(int64_t n) { return {.p = ratio(1, n)}; }
nn::BatchNormModuleOptions cumulative(int64_t n) { return {.num_features = n, .momentum = std::nullopt}; }
template <class Options>
Options features(int64_t n) {
  return {.num_features = n};
}
template <class Options>
Options parts(int64_t n) {
  return {n};
}
MaxPoolOptions max_window(int64_t size) { return {.kernel_size = size}; }
AvgPoolOptions avg_window(int64_t size) { return {.kernel_size = size}; }
LpPoolOptions lp_window(int64_t size) { return {.norm_type = 2, .kernel_size = size}; }
AdaptivePoolOptions adaptive(int64_t size) { return {.output_size = size}; }
InterpolateOptions up_by(int64_t factor) { return {.scale_factor = factor}; }
std::unique_ptr<nn::Module> gelu_module(const Integers& i) {
  return made(nn::GELU{{.approximation = i[0] == 1 ? GeluApproximation::tanh : GeluApproximation::none}});
}

/// A row of a recurrent network of two layers in two directions.
template <class M, class Options>
ModuleCase recurrent(const char* name) {
  return {name,
          {3, 2, 2},
          [](const Integers& i) {
            return made(M{
                Options{.input_size = i[0], .hidden_size = i[1], .num_layers = i[2], .bidirectional = true}});
          },
          {3, 2, 3}};
}
template <class M, class Options>
ModuleCase recurrent_cell(const char* name) {
  return {name,
          {3, 2},
          [](const Integers& i) { return made(M{Options{.input_size = i[0], .hidden_size = i[1]}}); },
          {2, 3}};
}

/// A module of two sequences, given one twice.
template <class M>
struct WithMemory : M {
  explicit WithMemory(M module) : M(std::move(module)) {}
  using M::forward;
  Tensor forward(const Tensor& x) override { return M::forward(x, x); }
};

ModuleCase conv_with_padding(const std::string& mode) {
  return {"Conv2d, padding by " + mode,
          {1, 1, 1},
          [mode](const Integers& i) {
            return made(nn::Conv2d{{.in_channels = 4,
                                    .out_channels = 2,
                                    .kernel_size = 2,
                                    .stride = i[0],
                                    .padding = i[1],
                                    .dilation = i[2],
                                    .padding_mode = mode}});
          },
          {1, 4, 3, 4}};
}

}  // namespace

Tensor ModuleCase::make_input() const {
  Generator generator(7);
  return classes > 0 ? randint(0, classes, input, generator) : randn(input, {.dtype = float64}, generator);
}

const std::vector<ModuleCase>& module_cases() {
  using namespace nn;
  static const std::vector<ModuleCase> cases = {
      plain("ReLU", ReLU{}),
      plain("ReLU6", ReLU6{}),
      {"Hardtanh",
       {-4, 2},
       [](const Integers& i) { return made(Hardtanh{{.min = ratio(i[0], 8), .max = ratio(i[1], 8)}}); },
       {3, 4}},
      plain("Sigmoid", Sigmoid{}),
      plain("Tanh", Tanh{}),
      by_one<LeakyReLU>("LeakyReLU", [](int64_t n) { return LeakyReLUOptions{.negative_slope = ratio(n, 10)}; }),
      {"PReLU", {4}, [](const Integers& i) { return made(PReLU{{.num_parameters = i[0]}}); }, {3, 4}},
      by_one<ELU>("ELU", [](int64_t n) { return ELUOptions{.alpha = ratio(n, 4)}; }),
      plain("SELU", SELU{}),
      by_one<CELU>("CELU", [](int64_t n) { return CELUOptions{.alpha = ratio(n, 4)}; }),
      {"GLU", {1}, [](const Integers& i) { return made(GLU{{.dim = i[0]}}); }, {3, 4}},
      {"GELU", {0}, gelu_module, {3, 4}},
      {"GELU, tanh", {1}, gelu_module, {3, 4}},
      by_one<Softplus>("Softplus", [](int64_t n) { return SoftplusOptions{.beta = ratio(n, 1)}; }),
      plain("LogSigmoid", LogSigmoid{}),
      plain("Softsign", Softsign{}),
      plain("Tanhshrink", Tanhshrink{}),
      plain("SiLU", SiLU{}),
      plain("Mish", Mish{}),
      plain("Hardswish", Hardswish{}),
      plain("Hardsigmoid", Hardsigmoid{}),
      by_one<Hardshrink>("Hardshrink", [](int64_t n) { return HardshrinkOptions{.lambd = ratio(n, 8)}; }),
      {"Threshold",
       {1, 2},
       [](const Integers& i) { return made(Threshold{{.threshold = ratio(i[0], 8), .value = ratio(i[1], 1)}}); },
       {3, 4}},
      by_one<Softshrink>("Softshrink", [](int64_t n) { return SoftshrinkOptions{.lambd = ratio(n, 8)}; }),
      {"Softmax", {1}, [](const Integers& i) { return made(Softmax{{.dim = i[0]}}); }, {3, 4}},
      {"LogSoftmax", {1}, [](const Integers& i) { return made(LogSoftmax{{.dim = i[0]}}); }, {3, 4}},
      {"Softmin", {1}, [](const Integers& i) { return made(Softmin{{.dim = i[0]}}); }, {3, 4}},
      plain("Softmax2d", Softmax2d{}, {2, 3, 2, 2}),
      plain("Identity", Identity{}),
      plain("Sequential", Sequential{Tanh{}, Linear{{.in_features = 4, .out_features = 2}}}),
      plain("Residual", Residual{{.body = Sequential{Linear{{.in_features = 4, .out_features = 4}}}}}),
      {"Linear",
       {4, 2},
       [](const Integers& i) { return made(Linear{{.in_features = i[0], .out_features = i[1]}}); },
       {3, 4}},
      {"WeightNorm",
       {1},
       [](const Integers& i) {
         return made(WeightNorm{Linear{{.in_features = 4, .out_features = 2}}, {.dim = i[0]}});
       },
       {3, 4}},
      {"SpectralNorm",
       {200, 0},  // so many that differences meet the limit
       [](const Integers& i) {
         return made(SpectralNorm{Linear{{.in_features = 4, .out_features = 2}},
                                  {.n_power_iterations = i[0], .dim = i[1]}});
       },
       {3, 4}},
      {.name = "Embedding",
       .usual = {4, 2, 3},
       .make_with =
           [](const Integers& i) {
             return made(Embedding{{.num_embeddings = i[0], .embedding_dim = i[1], .padding_idx = i[2]}});
           },
       .input = {2, 5},
       .classes = 3},  // the padding row, whose gradient is 0, is not drawn
      {"Conv1d",
       {4, 2, 3, 1},
       [](const Integers& i) {
         return made(
             Conv1d{{.in_channels = i[0], .out_channels = i[1], .kernel_size = i[2], .groups = i[3]}});
       },
       {2, 4, 6}},
      {"Conv2d",
       {4, 2, 2, 2},
       [](const Integers& i) {
         return made(
             Conv2d{{.in_channels = i[0], .out_channels = i[1], .kernel_size = i[2], .groups = i[3]}});
       },
       {1, 4, 3, 4}},
      {"Conv3d",
       {2, 4, 2, 1},
       [](const Integers& i) {
         return made(
             Conv3d{{.in_channels = i[0], .out_channels = i[1], .kernel_size = i[2], .groups = i[3]}});
       },
       {1, 2, 3, 2, 3}},
      conv_with_padding("zeros"),
      conv_with_padding("reflect"),
      conv_with_padding("replicate"),
      conv_with_padding("circular"),
      {"ConvTranspose1d",
       {2, 3, 2, 1},
       [](const Integers& i) {
         return made(ConvTranspose1d{
             {.in_channels = i[0], .out_channels = i[1], .kernel_size = i[2], .stride = i[3]}});
       },
       {2, 2, 4}},
      {"ConvTranspose2d",
       {4, 2, 2, 1, 2},
       [](const Integers& i) {
         return made(ConvTranspose2d{{.in_channels = i[0],
                                      .out_channels = i[1],
                                      .kernel_size = i[2],
                                      .stride = i[3],
                                      .groups = i[4]}});
       },
       {1, 4, 2, 3}},
      {"ConvTranspose2d, padding",
       {1, 0, 1},
       [](const Integers& i) {
         return made(ConvTranspose2d{{.in_channels = 4,
                                      .out_channels = 2,
                                      .kernel_size = 2,
                                      .padding = i[0],
                                      .output_padding = i[1],
                                      .dilation = i[2]}});
       },
       {1, 4, 3, 3}},
      {"ConvTranspose3d",
       {2, 2, 2, 1},
       [](const Integers& i) {
         return made(ConvTranspose3d{
             {.in_channels = i[0], .out_channels = i[1], .kernel_size = i[2], .stride = i[3]}});
       },
       {1, 2, 2, 2, 2}},
      by_one<BatchNorm1d>("BatchNorm1d", features<BatchNormModuleOptions>, {6, 2}),
      by_one<BatchNorm2d>("BatchNorm2d", features<BatchNormModuleOptions>, {2, 2, 3, 2}),
      by_one<BatchNorm2d>("BatchNorm2d, cumulative", cumulative, {2, 2, 3, 2}),
      by_one<BatchNorm3d>("BatchNorm3d", features<BatchNormModuleOptions>, {2, 2, 2, 1, 3}),
      {"LayerNorm",
       {3, 4},
       [](const Integers& i) {
         return made(LayerNorm{{.normalized_shape = Dims{i[0], i[1]}}});
       },
       {2, 3, 4}},
      {"RMSNorm",
       {3, 4},
       [](const Integers& i) {
         return made(RMSNorm{{.normalized_shape = Dims{i[0], i[1]}}});
       },
       {2, 3, 4}},
      {"LocalResponseNorm",
       {2},
       [](const Integers& i) { return made(LocalResponseNorm{{.size = i[0], .alpha = 0.5}}); },
       {2, 3, 4}},
      {"GroupNorm",
       {2, 4},
       [](const Integers& i) { return made(GroupNorm{{.num_groups = i[0], .num_channels = i[1]}}); },
       {2, 4, 3}},
      by_one<InstanceNorm1d>("InstanceNorm1d", features<InstanceNormModuleOptions>, {2, 2, 5}),
      {"InstanceNorm2d",
       {4},
       [](const Integers& i) {
         return made(InstanceNorm2d{{.num_features = i[0], .affine = true, .track_running_stats = true}});
       },
       {2, 4, 3, 2}},
      by_one<InstanceNorm3d>("InstanceNorm3d", features<InstanceNormModuleOptions>, {1, 2, 2, 2, 2}),
      {"MultiheadAttention",
       {4, 2},
       [](const Integers& i) { return made(MultiheadAttention{{.embed_dim = i[0], .num_heads = i[1]}}); },
       {3, 2, 4}},
      {"TransformerEncoderLayer",
       {4, 2, 5},
       [](const Integers& i) {
         return made(TransformerEncoderLayer{{.d_model = i[0],
                                              .nhead = i[1],
                                              .dim_feedforward = i[2],
                                              .activation = TransformerActivation::gelu,
                                              .norm_first = true}});
       },
       {3, 2, 4}},
      {"TransformerEncoder",
       {4, 2, 5, 2},
       [](const Integers& i) {
         return made(TransformerEncoder{{.layer = {.d_model = i[0], .nhead = i[1], .dim_feedforward = i[2]},
                                         .num_layers = i[3],
                                         .norm = true}});
       },
       {3, 2, 4}},
      {"TransformerDecoderLayer",
       {4, 2, 5},
       [](const Integers& i) {
         return made(WithMemory<TransformerDecoderLayer>{TransformerDecoderLayer{
             {.d_model = i[0], .nhead = i[1], .dim_feedforward = i[2], .norm_first = true}}});
       },
       {3, 2, 4}},
      {"TransformerDecoder",
       {4, 2, 5, 2},
       [](const Integers& i) {
         return made(WithMemory<TransformerDecoder>{
             TransformerDecoder{{.layer = {.d_model = i[0], .nhead = i[1], .dim_feedforward = i[2]},
                                 .num_layers = i[3],
                                 .norm = true}}});
       },
       {3, 2, 4}},
      {"Transformer",
       {4, 2, 2, 1, 5},
       [](const Integers& i) {
         return made(WithMemory<Transformer>{Transformer{{.d_model = i[0],
                                                          .nhead = i[1],
                                                          .num_encoder_layers = i[2],
                                                          .num_decoder_layers = i[3],
                                                          .dim_feedforward = i[4]}}});
       },
       {3, 2, 4}},
      recurrent<LSTM, RecurrentModuleOptions>("LSTM"),
      recurrent<GRU, RecurrentModuleOptions>("GRU"),
      recurrent<RNN, RNNOptions>("RNN"),
      recurrent_cell<LSTMCell, RecurrentCellOptions>("LSTMCell"),
      recurrent_cell<GRUCell, RecurrentCellOptions>("GRUCell"),
      recurrent_cell<RNNCell, RNNCellOptions>("RNNCell"),
      by_one<Dropout>("Dropout", one_of),
      by_one<Dropout1d>("Dropout1d", one_of, {2, 3, 4}),
      by_one<Dropout2d>("Dropout2d", one_of, {2, 3, 2, 2}),
      by_one<Dropout3d>("Dropout3d", one_of, {2, 3, 1, 2, 2}),
      by_one<StochasticDepth>("StochasticDepth", one_of),
      {"SqueezeExcitation",
       {4, 2},
       [](const Integers& i) {
         return made(SqueezeExcitation{
             {.input_channels = i[0], .squeeze_channels = i[1], .activation = SiLU{}}});
       },
       {2, 4, 3, 3}},
      {"Flatten",
       {1, -1},
       [](const Integers& i) { return made(Flatten{{.first = i[0], .last = i[1]}}); },
       {2, 3, 2}},
      {"Unflatten",
       {1, 2, 2},
       [](const Integers& i) { return made(Unflatten{{.dim = i[0], .sizes = Shape{i[1], i[2]}}}); },
       {3, 4}},
      by_one<PixelShuffle>("PixelShuffle", parts<PixelShuffleOptions>, {1, 8, 2, 3}),
      by_one<PixelUnshuffle>("PixelUnshuffle", parts<PixelUnshuffleOptions>, {1, 2, 4, 2}),
      by_one<ChannelShuffle>("ChannelShuffle", parts<ChannelShuffleOptions>, {2, 6, 2}),
      {"Upsample", {6}, [](const Integers& i) { return made(Upsample{{.size = i[0]}}); }, {1, 2, 3, 4}},
      by_one<Upsample>("Upsample, by a factor", up_by, {1, 2, 3, 2}),
      by_one<MaxPool1d>("MaxPool1d", max_window, {1, 2, 6}),
      by_one<MaxPool2d>("MaxPool2d", max_window, {1, 2, 4, 5}),
      by_one<MaxPool3d>("MaxPool3d", max_window, {1, 2, 2, 3, 4}),
      by_one<AvgPool1d>("AvgPool1d", avg_window, {1, 2, 6}),
      by_one<AvgPool2d>("AvgPool2d", avg_window, {1, 2, 4, 5}),
      by_one<AvgPool3d>("AvgPool3d", avg_window, {1, 2, 2, 3, 4}),
      by_one<LPPool1d>("LPPool1d", lp_window, {1, 2, 6}),
      by_one<LPPool2d>("LPPool2d", lp_window, {1, 2, 4, 5}),
      by_one<LPPool3d>("LPPool3d", lp_window, {1, 2, 2, 3, 4}),
      by_one<AdaptiveMaxPool1d>("AdaptiveMaxPool1d", adaptive, {1, 2, 5}),
      by_one<AdaptiveMaxPool2d>("AdaptiveMaxPool2d", adaptive, {1, 2, 3, 5}),
      by_one<AdaptiveMaxPool3d>("AdaptiveMaxPool3d", adaptive, {1, 2, 2, 3, 4}),
      by_one<AdaptiveAvgPool1d>("AdaptiveAvgPool1d", adaptive, {1, 2, 5}),
      by_one<AdaptiveAvgPool2d>("AdaptiveAvgPool2d", adaptive, {1, 2, 3, 5}),
      by_one<AdaptiveAvgPool3d>("AdaptiveAvgPool3d", adaptive, {1, 2, 2, 3, 4}),
  };
  return cases;
}

}  // namespace pleat::test
