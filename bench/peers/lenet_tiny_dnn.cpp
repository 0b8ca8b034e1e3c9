// lenet_pleat.cpp with tiny-dnn 1.0.0a3, whose layers take one image at a time.
#include <chrono>
#include <cstdlib>
#include <iostream>

#include <tiny_dnn/tiny_dnn.h>

using namespace tiny_dnn;
using namespace tiny_dnn::activation;

int main(int, char** arguments) {
  const int steps = std::atoi(arguments[1]), batch = 128;
  network<sequential> net;
  net << convolutional_layer<relu>(28, 28, 5, 1, 6, padding::same)
      << max_pooling_layer<identity>(28, 28, 6, 2) << convolutional_layer<relu>(14, 14, 5, 6, 16)
      << max_pooling_layer<identity>(10, 10, 16, 2) << fully_connected_layer<relu>(400, 120)
      << fully_connected_layer<relu>(120, 84) << fully_connected_layer<softmax>(84, 10);
  gradient_descent sgd;
  std::vector<vec_t> images(batch, vec_t(28 * 28));
  std::vector<label_t> labels(batch);
  for (vec_t& image : images) uniform_rand(image.begin(), image.end(), -1.0, 1.0);
  for (label_t& label : labels) label = uniform_rand(0, 9);
  const auto nothing = [] {};
  net.train<cross_entropy_multiclass>(sgd, images, labels, batch, 20, nothing, nothing);
  const auto start = std::chrono::steady_clock::now();
  net.train<cross_entropy_multiclass>(sgd, images, labels, batch, steps, nothing, nothing);
  const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - start;
  std::cout << all.count() / steps << '\n';
}
