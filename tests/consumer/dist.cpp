#include <iostream>

#include <pleat/dist/dist.h>
#include <pleat/pleat.h>

// The sum of what all processes have: of one that was started alone, its own.
int main() {
  const pleat::dist::Communicator world = pleat::dist::init();
  std::cout << pleat::dist::all_reduce(pleat::tensor({1.0, 2.0}), world) << '\n';
}
