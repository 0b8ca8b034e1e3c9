#pragma once

#include <cstdio>
#include <exception>
#include <iostream>

#include "pleat/pleat.h"

using namespace pleat;

/// What the calls of docs/from_pytorch.md and of other pages are made with; made anew for each row.
struct Names {
  Tensor x = rand({2, 3}) * 0.5 + 0.25, y = rand({2, 3}) * 0.5 + 0.25;  // between 0.25 and 0.75
  Tensor a = randn({3, 3}), b = randn({3, 3}), v = randn({3}), u = randn({3}), row = randn({3}),
         value = scalar(2.0, float32);
  Tensor w = randn({3, 3}).set_requires_grad();
  Tensor loss = sum(square(matmul(x, w)));
  Tensor mask = x < y;
  Tensor index = tensor({1, 0}, int64), places = tensor({{0, 1, 0}, {1, 0, 1}}, int64);
  Tensor i = tensor({0, 1}, int64), j = tensor({2, 0}, int64);
  Tensor signals = randn({2, 4, 8}), images = randn({2, 4, 8, 8}), volumes = randn({2, 4, 4, 4, 4});
  Tensor filters = randn({4, 4, 3, 3}), bias = zeros({4});
  Tensor scale = ones({4}), shift = zeros({4}), mean_ = zeros({4}), variance = ones({4});
  Tensor logits = randn({2, 3}), labels = tensor({2, 0}, int64), signs = tensor({1.0, -1.0}, float32);
  Tensor tokens = randn({2, 5, 8}), padding = zeros({2, 5}, boolean);
  nn::Sequential net{nn::Linear{{.in_features = 3, .out_features = 4}}, nn::ReLU{},
                     nn::Linear{{.in_features = 4, .out_features = 3}}};
  optim::SGD optimizer{net.parameters(), {.lr = 0.1, .momentum = 0.9}};
  data::TensorDataset dataset{rand({8, 3}), tensor({0, 1, 2, 0, 1, 2, 0, 1}, int64)};
  data::DataLoader loader{dataset, {.batch_size = 4}};
  nn::LSTM lstm{{.input_size = 3, .hidden_size = 4}};
  Tensor h = zeros({1, 2, 4}), c = zeros({1, 2, 4});
  optim::Adam adam{net.parameters()};
  optim::Schedule schedule{adam, optim::StepLR{.step_size = 30}};
  int64_t n = 2, step = 0, epochs = 1;
  double accuracy = 0;
  void train_some_steps() { mse_loss(net(x), y).backward(); }
  static inline volatile bool never = false;

  /// Runs the calls of a row; 1 where one throws.
  template <class Row>
  static int fails(const char* place) {
    try {
      manual_seed(1);
      Row().run();
      return 0;
    } catch (const std::exception& error) {
      std::printf("%s: %s\n", place, error.what());
      return 1;
    }
  }
};
