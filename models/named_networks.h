// Private header: not installed.
#pragma once

#include <string>
#include <vector>

#include "pleat/core/base/format.h"

namespace pleat::models {

/// A network by its name, and the function that makes it.
template <class Make>
struct NamedNetwork {
  std::string name;
  Make make;
};

template <class Make>
std::vector<std::string> names_of(const std::vector<NamedNetwork<Make>>& networks) {
  std::vector<std::string> names;
  for (const auto& one : networks) names.push_back(one.name);
  return names;
}

/// Throws ValueError, which begins with `op`, where there is none of that name.
template <class Make>
Make find_network(const char* op, const std::vector<NamedNetwork<Make>>& networks, const std::string& name) {
  std::string names;
  for (const auto& one : networks) {
    if (one.name == name) return one.make;
    names += (names.empty() ? "" : ", ") + one.name;
  }
  fail<ValueError>("{}: there is no network \"{}\"; there are {}", op, name, names);
}

}  // namespace pleat::models
