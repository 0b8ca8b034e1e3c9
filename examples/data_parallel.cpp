// One training by several processes: a network learns the direction of stripes in noise.
//
//   ./data_parallel                 one process
//   mpirun -n 4 ./data_parallel     four, with a quarter of each batch, each on a GPU where there are GPUs
//
// Expected: 100 % of the test images after 3 epochs, in 0.2 s in one process on an AMD EPYC. The losses are
// the same on any number of processes, but for rounding.
#include <cstdio>
#include <numbers>

#include <pleat/dist/dist.h>
#include <pleat/pleat.h>

using namespace pleat;

namespace {

constexpr int64_t batch_size = 48, directions = 4, size = 16;

/// Images [count, 1, size, size] of stripes in one of the directions, shifted, in noise. Of a generator of
/// its own: that of functions gives other numbers in each process.
data::TensorDataset draw_stripes(int64_t count, uint64_t seed) {
  Generator generator(seed);
  const Tensor classes = randint(0, directions, {count}, generator);
  const Tensor shift = rand({count, 1, 1}, {}, generator) * (2 * std::numbers::pi);
  const Tensor angle = reshape(classes.to(float32) * (std::numbers::pi / directions), {count, 1, 1});
  const Tensor across = reshape(arange(size), {1, 1, size}), down = reshape(arange(size), {1, size, 1});
  const Tensor stripes = sin(across * cos(angle) + down * sin(angle) + shift);
  const Tensor noise = randn({count, size, size}, {}, generator);
  return data::TensorDataset(unsqueeze(stripes + noise, 1), classes);
}

}  // namespace

int main() {
  const dist::Communicator world = dist::init();
  const DefaultDevice device(world.device());
  manual_seed(1);
  nn::Sequential net(nn::Conv2d{{.in_channels = 1, .out_channels = 16, .kernel_size = 3}},
                     nn::BatchNorm2d{{.num_features = 16}}, nn::ReLU{},
                     nn::Conv2d{{.in_channels = 16, .out_channels = 32, .kernel_size = 3, .stride = 2}},
                     nn::BatchNorm2d{{.num_features = 32}}, nn::ReLU{},
                     nn::AdaptiveAvgPool2d{{.output_size = 1}}, nn::Flatten{},
                     nn::Linear{{.in_features = 32, .out_features = directions}});
  // Batch norm by the statistics of the whole batch, and gradients of the whole batch.
  dist::convert_sync_batch_norm(net, world);
  dist::DataParallel ddp{net, world};
  optim::Adam adam{net.parameters(), {.lr = 0.01}};
  data::DataLoader train{draw_stripes(2000, 1),
                         {.batch_size = batch_size / world.size(),
                          .shuffle = true,
                          .rank = world.rank(),
                          .world_size = world.size(),
                          .device = world.device()}};
  data::DataLoader test{
      draw_stripes(500, 2),
      {.batch_size = 50, .rank = world.rank(), .world_size = world.size(), .device = world.device()}};
  for (int epoch = 1; epoch <= 3; ++epoch) {
    double loss_sum = 0, trained = 0, right = 0, tested = 0;  // of this process
    net.train();
    for (const data::Batch& batch : train) {
      const Tensor loss = cross_entropy(ddp(batch.inputs), batch.targets);
      adam.zero_grad();
      loss.backward();
      adam.step();
      const auto samples = static_cast<double>(batch.size());
      loss_sum += loss.item() * samples;
      trained += samples;
    }
    net.eval();
    for (const data::Batch& batch : test) {
      const NoGrad off_the_tape;
      right += sum(argmax(net(batch.inputs), 1) == batch.targets).item();
      tested += static_cast<double>(batch.size());
    }
    const Tensor all = dist::all_reduce(tensor({loss_sum, trained, right, tested}, float64), world);
    if (world.is_main())
      std::printf("epoch %d  loss %.4f  test accuracy %.1f %%\n", epoch, (all[0] / all[1]).item(),
                  100 * (all[2] / all[3]).item());
  }
  if (world.is_main()) io::write_safetensors("stripes.safetensors", net.state_dict());
}
