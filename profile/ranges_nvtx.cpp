#include <nvtx3/nvToolsExt.h>

#include "pleat/profile/device_tracer.h"

namespace pleat::profile {
namespace {

/// A domain of our own, so that tools can tell our ranges from those of others.
nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t handle = nvtxDomainCreateA("pleat");
  return handle;
}

}  // namespace

bool has_nvtx() { return true; }

void nvtx_push(const char* name) noexcept {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  nvtxDomainRangePushEx(domain(), &attributes);
}

void nvtx_pop() noexcept { nvtxDomainRangePop(domain()); }

}  // namespace pleat::profile
