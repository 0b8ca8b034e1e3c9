// A data set of one's own: windows of a signal, which are cut out when they are asked for.
#include <iostream>

#include <pleat/pleat.h>

using namespace pleat;

/// `length` numbers of a signal, and the number that follows them.
class Windows : public data::Dataset {
 public:
  Windows(Tensor signal, int64_t length) : signal_(std::move(signal)), length_(length) {}

  int64_t size() const override { return signal_.size(0) - length_; }

  data::Batch get(std::span<const int64_t> indices) const override {
    std::vector<Tensor> inputs, targets;
    for (const int64_t i : indices) {
      inputs.push_back(narrow(signal_, 0, i, length_));
      targets.push_back(signal_[i + length_]);
    }
    return {stack(inputs, 0), stack(targets, 0)};
  }

 private:
  Tensor signal_;
  int64_t length_;
};

/// A transform: adds noise, the same for a sample in each run and thread.
data::Transform add_noise(double width) {
  return [width](data::Batch& batch, const data::SampleRandom& random) {
    std::vector<double> noise;
    for (int64_t i = 0; i < batch.size(); ++i) noise.push_back(width * (random.uniform(i) - 0.5));
    batch.inputs = batch.inputs + unsqueeze(from_vector(noise).to(float32), 1);
  };
}

int main() {
  const Windows windows(sin(linspace(0, 20, 1000)), 16);
  data::DataLoader loader(
      windows,
      {.batch_size = 64, .shuffle = true, .drop_last = true, .workers = 2, .transforms = {add_noise(0.01)}});
  const data::Batch batch = *loader.begin();
  std::cout << windows.size() << " windows in " << loader.size() << " batches\n"
            << batch.inputs.describe() << ", " << batch.targets.describe() << '\n';
}
