#include "pleat/dist/buckets.h"

#include <map>
#include <utility>

#include "pleat/core/tensor/create.h"

namespace pleat::dist {
namespace {

/// Gradients begin where a vector register may.
constexpr int64_t alignment = 64;

int64_t aligned_numel(const Tensor& param) {
  const int64_t unit = alignment / size_of(param.dtype());
  return (param.numel() + unit - 1) / unit * unit;
}

Tensor view_of(const Tensor& elements, const Tensor& param, int64_t offset) {
  return elements.as_strided(param.shape(), param.is_dense() ? param.strides() : empty_like(param).strides(),
                             offset);
}

}  // namespace

Buckets make_buckets(const std::vector<Tensor>& params, const std::vector<std::size_t>& order,
                     int64_t first_bytes, int64_t bytes) {
  std::vector<std::vector<std::size_t>> groups;
  std::map<std::pair<DType, std::string>, std::pair<std::size_t, int64_t>>
      open;  // the group, and its elements
  for (const std::size_t i : order) {
    const Tensor& param = params[i];
    const int64_t size = aligned_numel(param) * size_of(param.dtype());
    const auto key = std::pair{param.dtype(), name(param.device())};
    const auto found = open.find(key);
    const bool fits = found != open.end() &&
                      found->second.second + size <= (found->second.first == 0 ? first_bytes : bytes);
    if (!fits) {
      open[key] = {groups.size(), 0};
      groups.emplace_back();
    }
    open[key].second += size;
    groups[open[key].first].push_back(i);
  }
  Buckets all;
  all.views.resize(params.size());
  all.bucket_of.resize(params.size());
  for (std::vector<std::size_t>& members : groups) {
    int64_t elements = 0;
    for (const std::size_t i : members) elements += aligned_numel(params[i]);
    const Tensor& like = params[members.front()];
    const Tensor memory = zeros({elements}, {.dtype = like.dtype(), .device = like.device()});
    int64_t offset = 0;
    for (const std::size_t i : members) {
      all.views[i] = view_of(memory, params[i], offset);
      all.bucket_of[i] = all.buckets.size();
      offset += aligned_numel(params[i]);
    }
    all.buckets.push_back({.elements = memory, .members = std::move(members)});
  }
  return all;
}

}  // namespace pleat::dist
