#pragma once

#include <functional>
#include <string>
#include <vector>

/// What people write by mistake, and what Pleat answers: docs/errors.md is this table, and errors_test.cpp compares them.

struct Mistake {
  std::string code;
  std::function<void()> run;
};

/// Mistakes of one kind; `given` says what the names in their code stand for.
struct MistakeSection {
  std::string title;
  std::string given;
  std::vector<Mistake> mistakes;
};

/// A mistake, written once as code to run and to show.
#define MISTAKE(...) \
  Mistake { #__VA_ARGS__, [=]() mutable { __VA_ARGS__; } }

MistakeSection tensor_mistakes();
MistakeSection function_mistakes();
MistakeSection convolution_mistakes();
MistakeSection tape_mistakes();
MistakeSection module_mistakes();
MistakeSection loss_mistakes();
MistakeSection optimizer_mistakes();
MistakeSection data_mistakes();
MistakeSection export_mistakes();
MistakeSection inference_mistakes();
/// Run in an empty folder of their own.
MistakeSection file_mistakes();
