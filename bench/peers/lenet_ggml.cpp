// lenet_pleat.cpp with ggml, whose convolutions are im2col and a product. Sizes are in the reverse order.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <vector>

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml-opt.h>
#include <ggml.h>

int main(int, char** arguments) {
  const int steps = std::atoi(arguments[1]);
  constexpr int64_t batch = 128;
  ggml_backend_t cpu = ggml_backend_cpu_init();
  ggml_backend_cpu_set_n_threads(cpu, 2);
  ggml_backend_sched_t schedule = ggml_backend_sched_new(&cpu, nullptr, 1, 1024, false, true);

  ggml_context* fixed = ggml_init({ggml_tensor_overhead() * 32, nullptr, true});
  const auto parameter = [&](int64_t a, int64_t b = 1, int64_t c = 1, int64_t d = 1) {
    ggml_tensor* t = ggml_new_tensor_4d(fixed, GGML_TYPE_F32, a, b, c, d);
    ggml_set_param(t);
    return t;
  };
  ggml_tensor *w1 = parameter(5, 5, 1, 6), *b1 = parameter(1, 1, 6), *w2 = parameter(5, 5, 6, 16),
              *b2 = parameter(1, 1, 16), *w3 = parameter(400, 120), *b3 = parameter(120),
              *w4 = parameter(120, 84), *b4 = parameter(84), *w5 = parameter(84, 10), *b5 = parameter(10);
  ggml_tensor* images = ggml_new_tensor_2d(fixed, GGML_TYPE_F32, 28 * 28, batch);
  ggml_set_input(images);
  ggml_backend_buffer_t memory = ggml_backend_alloc_ctx_tensors(fixed, cpu);
  std::mt19937 random{1};
  std::normal_distribution<float> normal;
  const auto fill = [&](ggml_tensor* t, float deviation) {
    std::vector<float> values(static_cast<std::size_t>(ggml_nelements(t)));
    for (float& value : values) value = deviation * normal(random);
    ggml_backend_tensor_set(t, values.data(), 0, ggml_nbytes(t));
  };
  for (ggml_tensor* t : {w1, b1, w2, b2, w3, b3, w4, b4, w5, b5}) fill(t, 0.1F);

  ggml_context* graph =
      ggml_init({1024 * ggml_tensor_overhead() + 3 * ggml_graph_overhead_custom(1024, true), nullptr, true});
  const auto conv = [&](ggml_tensor* x, ggml_tensor* w, ggml_tensor* b, int padding) {
    ggml_tensor* y = ggml_add(graph, ggml_conv_2d(graph, w, x, 1, 1, padding, padding, 1, 1), b);
    return ggml_pool_2d(graph, ggml_relu(graph, y), GGML_OP_POOL_MAX, 2, 2, 2, 2, 0, 0);
  };
  const auto linear = [&](ggml_tensor* x, ggml_tensor* w, ggml_tensor* b) {
    return ggml_add(graph, ggml_mul_mat(graph, w, x), b);
  };
  ggml_tensor* x = conv(conv(ggml_reshape_4d(graph, images, 28, 28, 1, batch), w1, b1, 2), w2, b2, 0);
  x = ggml_reshape_2d(graph, x, 400, batch);
  ggml_tensor* scores = linear(ggml_relu(graph, linear(ggml_relu(graph, linear(x, w3, b3)), w4, b4)), w5, b5);
  ggml_set_output(scores);

  ggml_opt_dataset_t data = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, 28 * 28, 10, batch, batch);
  fill(ggml_opt_dataset_data(data), 1);
  float* labels = ggml_get_data_f32(ggml_opt_dataset_labels(data));
  for (int64_t i = 0; i < batch; ++i) labels[10 * i + static_cast<int64_t>(random() % 10)] = 1;

  ggml_opt_params params = ggml_opt_default_params(schedule, GGML_OPT_LOSS_TYPE_CROSS_ENTROPY);
  params.ctx_compute = graph;
  params.inputs = images;
  params.outputs = scores;
  params.optimizer = GGML_OPT_OPTIMIZER_TYPE_SGD;
  params.get_opt_pars = [](void*) {
    ggml_opt_optimizer_params options{};
    options.sgd.alpha = 0.01F;
    return options;
  };
  ggml_opt_context_t optimizer = ggml_opt_init(params);
  ggml_opt_result_t result = ggml_opt_result_init();
  std::chrono::steady_clock::time_point start;
  for (int step = -20; step < steps; ++step) {
    if (step == 0) start = std::chrono::steady_clock::now();
    ggml_opt_epoch(optimizer, data, result, nullptr, batch, nullptr, nullptr);
  }
  const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - start;
  std::cout << all.count() / steps << '\n';

  ggml_opt_result_free(result);
  ggml_opt_free(optimizer);
  ggml_opt_dataset_free(data);
  ggml_free(graph);
  ggml_free(fixed);
  ggml_backend_buffer_free(memory);
  ggml_backend_sched_free(schedule);
  ggml_backend_free(cpu);
}
