// Calls that must not compile, for each would mean something else than it says: the lines that end with
// "refused", after calls of their kind that must compile. check.cmake compiles this file with and without
// them.

#include "pleat/pleat.h"

using namespace pleat;

void designated_initialisers(const Tensor& x, const Tensor& w) {
  sum(x, {.keepdim = true});
  sum(x, {.p = 1});           // refused
  sum(x, {.correction = 0});  // refused
  sum(x, 1, {.p = 1});        // refused
  norm(x, {.p = 1});
  norm(x, {.q = 1});  // refused
  norm(x, {1.5});     // refused
  var(x, {.correction = 0});
  var(x, {.p = 1});  // refused
  mean(x, {.keepdim = true});
  mean(x, {.size = 1});  // refused
  max(x, {.keepdim = true});
  max(x, {.other = 1});  // refused
  argmax(x, {.dim = 1});
  argmax(x, {.p = 1});  // refused
  softmax(x, 1);
  softmax(x, {.size = 1});  // refused
  cumsum(x, 1, true);
  cumsum(x, {.reverse = true});  // refused
  cumsum(x, 1, {.p = true});     // refused
  dropout(x, 0.5, false);
  dropout(x, {.training = false});  // refused
  leaky_relu(x, 0.1);
  leaky_relu(x, {.other = 1});  // refused
  zeros({2, 3});
  zeros({.a = 2});                             // refused
  zeros({.a = 2, .b = 3});                     // refused
  zeros(3, {.size = 1});                       // refused
  randn({.a = 2, .b = 3});                     // refused
  from_vector(std::vector<int>{1}, {.a = 1});  // refused
  reshape(x, {2, -1});
  reshape(x, {.a = 2, .b = 3});  // refused
  expand(x, {.a = 2, .b = 3});   // refused
  tile(x, {.a = 2, .b = 3});     // refused
  pad(x, {1, 1});
  pad(x, {.a = 2, .b = 3});               // refused
  split_with_sizes(x, {.a = 1, .b = 2});  // refused
  permute(x, {.a = 1});                   // refused
  flip(x, {.dim = 1});                    // refused
  roll(x, {.a = 1}, 0);                   // refused
  squeeze(x, {.dim = 1});                 // refused
  select(x, 0, 1);
  select(x, 0, {.index = 1});  // refused
  x[1];
  x[{.a = 1}];  // refused
  conv2d(x, w, {.stride = 2, .padding = {1, 2}});
  conv2d(x, w, {.stride = {.a = 2}});             // refused
  conv2d(x, w, {.padding = {.a = 2}});            // refused
  conv2d(x, w, {.padding = {.a = 1, .b = 2}});    // refused
  conv2d(x, w, {.padding = {{.a = 1, .b = 2}}});  // refused
  max_pool2d(x, {.kernel_size = 2});
  max_pool2d(x, {.kernel_size = {.a = 2}});  // refused
  adaptive_avg_pool2d(x, {.output_size = 1});
  adaptive_avg_pool2d(x, {.output_size = {.a = 1}});  // refused
  interpolate(x, {.scale_factor = 2});
  interpolate(x, {.scale_factor = {.a = 2}});  // refused
  layer_norm(x, w, w, {.normalized_shape = 4});
  layer_norm(x, w, w, {.normalized_shape = {.a = 4}});  // refused
  nn::Unflatten{{.sizes = {2, 3}}};
  nn::Unflatten{{.sizes = {.a = 2, .b = 3}}};  // refused
  add(x, 1);
  add(x, {.alpha = 2});  // refused
}

void bools(const Tensor& x, const Tensor& y, bool yes) {
  x + 1;
  x + true;         // refused
  true * x;         // refused
  add(x, yes);      // refused
  add_(x, yes);     // refused
  pow(x, yes);      // refused
  maximum(x, yes);  // refused
  clamp(x, {.min = 0});
  clamp(x, {.min = yes});  // refused
  x < 1;
  x < true;  // refused
  x == true;
  sum(x, 0);
  sum(x, true);        // refused
  sum(x, {yes, yes});  // refused
  sum(x, x == y);      // refused
  sum(x, 0, 1);        // refused
  sum(x, 0, 0.5);      // refused
  argmax(x, 1);
  argmax(x, yes);   // refused
  softmax(x, yes);  // refused
  cumsum(x, yes);   // refused
  cumsum(x, 0, 1);  // refused
  cat({x, y}, 1);
  cat({x, y}, yes);      // refused
  stack({x, y}, yes);    // refused
  unsqueeze(x, yes);     // refused
  transpose(x, yes, 0);  // refused
  select(x, 0, yes);     // refused
  narrow(x, 0, 0, yes);  // refused
  gather(x, yes, y);     // refused
  x.size(0);
  x.size(yes);  // refused
  x[0];
  x[yes];  // refused
  dropout(x, 0.5, yes);
  dropout(x, yes);     // refused
  dropout(x, 0.5, 1);  // refused
  leaky_relu(x, yes);  // refused
  topk(x, 1);
  topk(x, yes);  // refused
  one_hot(x, 3);
  one_hot(x, yes);  // refused
  zeros({2, 3});
  zeros(yes);       // refused
  zeros({2, yes});  // refused
  arange(3);
  arange(yes);  // refused
  eye(3);
  eye(yes);  // refused
  full({2}, true, boolean);
  reshape(x, yes);  // refused
  pad(x, {1, 1});
  pad(x, {yes, yes});  // refused
  max_pool2d(x, {.kernel_size = 2});
  max_pool2d(x, {.kernel_size = yes});    // refused
  interpolate(x, {.scale_factor = yes});  // refused
  conv2d(x, y, {.padding = 1});
  conv2d(x, y, {.padding = yes});  // refused
  nn::Linear{{2, 3}};
  nn::Linear{{2, yes}};  // refused
}

void pointers(const Tensor& x, const char* text, const int* numbers) {
  x + 5;
  x + "5";      // refused
  x* text;      // refused
  x == "a";     // refused
  add(x, "5");  // refused
  x += text;    // refused
  fill_(x, 1);
  fill_(x, "1");  // refused
  full({2}, 1);
  full({2}, "1");  // refused
  where(x == x, x, 0);
  where(x == x, x, "0");         // refused
  masked_fill(x, x == x, text);  // refused
  scalar(1);
  scalar(text);  // refused
  tensor(1);
  tensor(text);  // refused
  sum(x, 1, true);
  sum(x, "1");                  // refused
  sum(x, 1, "keepdim");         // refused
  sum(x, numbers);              // refused
  softmax(x, text);             // refused
  zeros(numbers);               // refused
  cumsum(x, 0, "reverse");      // refused
  dropout(x, 0.5, "training");  // refused
  x[0];
  x["0"];  // refused
  data::read_mnist("folder", true);
  data::read_mnist("folder", "test");    // refused
  data::read_cifar10("folder", "test");  // refused
  data::random_horizontal_flip(1);
  data::random_horizontal_flip(true);  // refused
  nn::Tanh().train(false);
  nn::Tanh().train("eval");  // refused
}

void characters(const Tensor& x, char letter) {
  x + 1;
  x + 'a';           // refused
  letter* x;         // refused
  x == 'a';          // refused
  fill_(x, letter);  // refused
  full({2}, 'a');    // refused
  sum(x, 1);
  sum(x, 'a');          // refused
  sum(x, {letter, 1});  // refused
  softmax(x, letter);   // refused
  zeros({letter});      // refused
  dropout(x, letter);   // refused
  x[0];
  x['a'];  // refused
  x + uint8_t{1};
  x + int8_t{1};
}

void fractions(const Tensor& x) {
  sum(x, 1);
  sum(x, 1.5);        // refused
  sum(x, {0.5, 1});   // refused
  argmax(x, 1.5);     // refused
  softmax(x, 1.5);    // refused
  select(x, 0, 0.5);  // refused
  zeros({2.5, 3});    // refused
  reshape(x, 2.0);    // refused
  x[0];
  x[0.5];  // refused
  max_pool2d(x, {.kernel_size = 2});
  max_pool2d(x, {.kernel_size = 2.5});  // refused
}

void tensors_of_lists(const Tensor& x, const std::vector<std::string>& words) {
  tensor(std::vector<float>{1, 2});
  tensor({1, 2});
  tensor(words);    // refused
  tensor(x);        // refused
  tensor({x, x});   // refused
  tensor("words");  // refused
  tensor('a');      // refused
  tensor(&x);       // refused
}
