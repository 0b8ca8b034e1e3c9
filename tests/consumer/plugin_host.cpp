#include <cstdio>

#include <dlfcn.h>

// Loads the plugin, runs it and lets it go, twice.
int main(int, char** argv) {
  for (int i = 0; i < 2; ++i) {
    void* const plugin = ::dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    void* const run = plugin != nullptr ? ::dlsym(plugin, "plugin_run") : nullptr;
    if (run == nullptr) {
      std::fprintf(stderr, "%s\n", ::dlerror());
      return 1;
    }
    reinterpret_cast<void (*)()>(run)();
    ::dlclose(plugin);
  }
}
