#include "pleat/nn/containers.h"

#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

struct Scale : nn::Module {
  Tensor factor;
  explicit Scale(double value) : factor(scalar(value)) {}
  Tensor forward(const Tensor& x) override { return x * factor; }
  void members(nn::Members& m) override { m("factor", factor); }
};

Tensor add_one(const Tensor& x) { return x + 1; }

template <class Named>
std::vector<std::string> names(const Named& named) {
  std::vector<std::string> all;
  for (const auto& [name, value] : named) all.push_back(name);
  return all;
}

[[maybe_unused]] nn::Sequential block() { return nn::Sequential{Scale(2), add_one}; }

/// A Sequential by another name, with something that a copy as Sequential would lack.
struct Block : nn::Sequential {
  explicit Block(double factor) : Sequential{Scale(factor), add_one} {}
  Tensor forward(const Tensor& x) override { return -Sequential::forward(x); }
};

/// "0", "0.0", "0.1": the paths of all modules inside.
std::string paths(nn::Module& net) {
  std::string all;
  for (const auto& [path, module] : net.named_modules())
    if (!path.empty()) all += (all.empty() ? "" : " ") + path;
  return all;
}
[[maybe_unused]] std::string paths(nn::Module&& net) { return paths(net); }

}  // namespace

// Braces prefer a list to a copy since C++'s CWG 2137, clang from version 20 on.
#if !defined(__clang__) || __clang_major__ >= 20
TEST_CASE("braces nest a container, parentheses and = copy it", "[cpu]") {
  const std::string inside = "0 0.0 0.1", same = "0 1";
  nn::Sequential named = block();
  const nn::Sequential constant = block();
  struct Owner {
    nn::Sequential made{block()}, again, copied, equal = block();
    Owner() : again{block()}, copied(block()) {}
  } owner;
  nn::Sequential given = block();

  CHECK(paths(nn::Sequential{block()}) == inside);
  CHECK(paths(nn::Sequential{named}) == inside);
  CHECK(paths(nn::Sequential{constant}) == inside);
  CHECK(paths(nn::Sequential{std::move(given)}) == inside);
  CHECK(paths(nn::Sequential{nn::Sequential{block()}}) == "0 0.0 0.0.0 0.0.1");
  CHECK(paths(nn::Sequential{nn::ModuleList{block()}}) == "0 0.0 0.0.0 0.0.1");
  CHECK(paths(nn::Sequential{Block(2)}) == inside);
  CHECK(paths(nn::Sequential{nn::AnyModule(block())}) == inside);
  CHECK(paths(nn::Sequential{{"stem", block()}}) == "stem stem.0 stem.1");
  CHECK(paths(nn::Sequential{block(), block()}) == "0 0.0 0.1 1 1.0 1.1");
  CHECK(paths(nn::Sequential(block(), block())) == "0 0.0 0.1 1 1.0 1.1");
  CHECK(paths(nn::ModuleList{block()}) == inside);
  CHECK(paths(nn::ModuleList{nn::ModuleList{Scale(1)}}) == "0 0.0");
  const nn::Sequential listed = {block()};
  CHECK(paths(nn::Sequential(listed)) == inside);
  auto automatic = nn::Sequential{block()};
  CHECK(paths(automatic) == inside);
  CHECK(paths(owner.made) == inside);
  CHECK(paths(owner.again) == inside);
  CHECK(paths(*std::make_unique<nn::Sequential>(nn::Sequential{block()})) == inside);
  CHECK(nn::Sequential{Block(2)}(scalar(3.0)).item() == -7);
  CHECK(names(nn::Sequential{block()}.state_dict()) == std::vector<std::string>{"0.0.factor"});
  CHECK_THROWS_WITH((nn::Sequential{{"", block()}}), Contains("must not be empty"));

  CHECK(paths(nn::Sequential(block())) == same);
  CHECK(paths(nn::Sequential(named)) == same);
  nn::Sequential equal = named;
  CHECK(paths(equal) == same);
  equal = block();
  CHECK(paths(equal) == same);
  CHECK(paths(owner.copied) == same);
  CHECK(paths(owner.equal) == same);
  std::vector<nn::Sequential> several{block(), block()};
  several.push_back(named);
  several.emplace_back(named);
  for (nn::Sequential& one : several) CHECK(paths(one) == same);
  std::optional<nn::Sequential> maybe{named};
  CHECK(paths(*maybe) == same);
  std::array<nn::Sequential, 1> array{named};
  CHECK(paths(array[0]) == same);
  CHECK(paths(*std::make_shared<nn::Sequential>(named)) == same);
  CHECK(paths(nn::clone(named)) == same);
  Block derived(2);
  Block twin = derived;
  CHECK(twin(scalar(3.0)).item() == -7);
}

template <class M>
concept CopiedInBraces = requires(const M& module) {
  M{module};
};
static_assert(!CopiedInBraces<nn::Residual>);
#endif

// What would be copied in part, or as it is where another module is to be around it, does not compile.
static_assert(!std::is_constructible_v<nn::Sequential, Block>);
static_assert(!std::is_constructible_v<nn::Sequential, Block&>);
static_assert(!std::is_convertible_v<Block, nn::Sequential>);
static_assert(!std::is_constructible_v<nn::ModuleList, nn::Sequential>);
static_assert(std::is_copy_constructible_v<nn::Sequential>);
static_assert(std::is_nothrow_move_constructible_v<nn::Sequential>);
template <class M>
concept CopiedAsOptions = requires(const M& module) {
  M{{module}};
};
static_assert(!CopiedAsOptions<nn::Residual> && std::is_copy_constructible_v<nn::Residual>);

TEST_CASE("Sequential applies modules and functions in order") {
  nn::Sequential net{Scale(2), add_one, Scale(10), [](const Tensor& x) { return -x; }};
  CHECK(net(scalar(3.0)).item() == -70);
  CHECK(net.size() == 4);
  CHECK(names(net.named_parameters()) == std::vector<std::string>{"0.factor", "2.factor"});
  net.add(Scale(0.5));
  CHECK(net(scalar(3.0)).item() == -35);
  CHECK(nn::Sequential()(scalar(3.0)).item() == 3);

  CHECK(net[-1].parameters()[0].item() == 0.5);
  CHECK(net.get<Scale>(0).factor.item() == 2);
  CHECK(net.get<nn::Lambda>(1)(scalar(1.0)).item() == 2);
  CHECK_THROWS_WITH(net.get<Scale>(1), "Sequential: module 1 is a Lambda, not what was asked for");
  CHECK_THROWS_WITH(net[5], "Sequential: has 5 modules, got index 5");
  CHECK(to_string(net).substr(0, 34) == "Sequential(\n  (0): Scale()\n  (1): ");
}

TEST_CASE("Sequential takes names") {
  nn::Sequential net{{"double", Scale(2)}, {"plus", add_one}};
  net.add("last", Scale(3));
  CHECK(net(scalar(1.0)).item() == 9);
  CHECK(names(net.state_dict()) == std::vector<std::string>{"double.factor", "last.factor"});
  CHECK(net["last"].num_parameters() == 1);
  CHECK_THROWS_WITH(net["first"], "Sequential: has no module 'first'");
  CHECK_THROWS_WITH(net.add("last", Scale(1)), "Sequential: there is a module 'last' already");
  CHECK_THROWS_AS(net.add("a.b", Scale(1)), ValueError);
  CHECK_THROWS_AS(net.add(nn::AnyModule()), ValueError);
  CHECK(net.size() == 3);
}

TEST_CASE("containers are values") {
  nn::Sequential net{Scale(2), nn::Sequential{Scale(3)}};
  nn::Sequential copy = net;
  copy.add(Scale(5));
  CHECK(net.size() == 2);
  nn::Sequential twin = nn::clone(net);
  net.get<Scale>(0).factor.set_data(scalar(7.0));
  CHECK(copy(scalar(1.0)).item() == 105);
  CHECK(twin(scalar(1.0)).item() == 6);
  net.eval();
  CHECK_FALSE(net[1].training());
  CHECK(copy[0].training());

  nn::AnyModule any = Scale(2);
  nn::AnyModule other = any;
  any = nn::AnyModule();
  CHECK(other(scalar(1.0)).item() == 2);
  CHECK_THROWS_WITH(any(scalar(1.0)), Contains("there is no module in it"));
}

TEST_CASE("ModuleList leaves the order of calls to its owner") {
  nn::ModuleList layers{Scale(2), Scale(3)};
  Tensor x = scalar(1.0);
  for (nn::Module& layer : layers) x = x + layer(x);
  CHECK(x.item() == 12);
  CHECK(layers.parameters().size() == 2);
  CHECK_THROWS_WITH(layers(x), Contains("ModuleList: has no forward"));
}

TEST_CASE("Residual adds its input, or what the shortcut makes of it") {
  nn::Residual plain{{.body = Scale(2)}};
  CHECK(plain(scalar(5.0)).item() == 15);
  nn::Residual full{
      {.body = nn::Sequential{Scale(2), add_one}, .shortcut = Scale(10), .activation = add_one}};
  CHECK(full(scalar(5.0)).item() == 62);
  CHECK(names(full.named_parameters()) == std::vector<std::string>{"body.0.factor", "shortcut.factor"});
  const Tensor x = ones({1}).set_requires_grad();
  sum(full(x)).backward();
  CHECK(x.grad().item() == 12);

  nn::Residual uneven{{.body = [](const Tensor& y) { return expand(y, {2, 3}); }}};
  CHECK_THROWS_WITH(uneven(ones({3})),
                    Contains("Residual: body and shortcut must give one shape, got [2, 3] and [3]"));
}
